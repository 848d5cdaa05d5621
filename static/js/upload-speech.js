// A line for screen readers that says how an upload goes: seldom while it goes on, once at its end.
const EVERY_MS = 15000;

export class SpokenLine {
  constructor(element) {
    this.element = element;
    this.spokenAt = 0;
    this.last = "";
  }

  say(words) {
    this.spokenAt = Date.now();
    this.last = words;
    this.element.textContent = words;
  }

  sayNowAndThen(words) {
    if (Date.now() - this.spokenAt >= EVERY_MS) this.say(words);
  }

  sayOnce(words) {
    if (words !== this.last) this.say(words);
  }
}
