"""Errors of searches, answers and their models."""

from __future__ import annotations

from portal.errors.base import Conflict, InvalidInput, NotFound, PortalError, Unavailable
from portal.errors.messages import N_

# A message on the line of its name keeps this list short.
# fmt: off


class NoSuchModel(NotFound):
    message = N_("There is no embedding model “%(name)s”. `portal models` lists the available "
                 "models; `portal reindex --model NAME` builds another.")


class NoEmbedding(Conflict):
    message = N_("This passage has not been embedded by the current model yet. Try again when the "
                 "model is built.")


class InvalidQueryVector(InvalidInput):
    message = N_("The query vector cannot be used: %(reason)s.")


class InvalidEmbedding(PortalError):
    status = 502
    message = N_("The embedding model gave an unusable vector: %(reason)s. Check the model's "
                 "settings.")


class BatchTimedOut(Unavailable):
    message = N_("The batch ran out of time before this query. Send it again with fewer queries at "
                 "once.")


class EmbedderUnavailable(Unavailable):
    message = N_("The embedding model cannot be used: %(reason)s.")


class RerankerUnavailable(Unavailable):
    message = N_("The re-ranking model cannot be used: %(reason)s.")


class ChatUnavailable(Unavailable):
    message = N_("The language model did not answer: %(reason)s.")


class EndpointUnreachable(ChatUnavailable):
    message = N_("Could not reach %(address)s.")


class TooManyAnswers(Unavailable):
    message = N_("The server is writing as many answers as it can. Try again in a moment.")


class TooManyOwnAnswers(PortalError):
    status = 429
    message = N_("You already have %(max)s answers in progress. Wait for one to finish, or stop "
                 "it.")
    retry_after_s = 2


class VectorStoreDisabled(Unavailable):
    message = N_("Vector search is switched off on this server. Search by keywords, or ask your "
                 "administrator.")
    retry_after_s = None
