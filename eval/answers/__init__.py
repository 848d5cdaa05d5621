"""Quality of answers: `./run eval --answers`."""
