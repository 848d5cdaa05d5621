"""Rules that compare a question with a statement: kinds of answers, dates, ranges, events."""
