"""Codes for what was left out of a search or an answer, besides those of errors
(`EmbedderUnavailable.code`)."""

MODEL_NOT_INDEXED = "model_not_indexed"
KEYWORD_UNAVAILABLE = "keyword_unavailable"
KEYWORD_INCOMPLETE = "keyword_incomplete"
VECTOR_UNAVAILABLE = "vector_unavailable"
PHRASE_NOT_FOUND = "phrase_not_found"
NO_WORDS = "no_words"
ANSWER_CUT_OFF = "answer_cut_off"
PARTLY_READ = "partly_read"
