"""Rules that compare a question with a statement, such as by kind of answer, date or number."""
