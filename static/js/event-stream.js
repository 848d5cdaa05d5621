// Reads server-sent events from the answer to a POST, which EventSource cannot do.

// Calls `onEvent(name, values)` for each event, in order. Rejects when the connection breaks, and
// with an AbortError when it was stopped.
export async function readEvents(response, onEvent) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value;
    const blocks = buffer.split("\n\n");
    buffer = blocks.pop();
    for (const block of blocks) {
      const event = parse(block);
      if (event) onEvent(event.name, event.values);
    }
  }
}

function parse(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  return data.length ? { name, values: JSON.parse(data.join("\n")) } : null;
}
