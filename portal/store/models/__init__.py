"""The tables. Import `metadata` from here: it includes all of them."""

from __future__ import annotations

from portal.store.models.accounts import (
    GroupMemberRow,
    GroupRow,
    InvitationRow,
    KnownDeviceRow,
    OidcSignInRow,
    OidcUsedValueRow,
    OutsideIdentityRow,
    PasswordResetRow,
    SessionRow,
    TokenRow,
    UserRow,
)
from portal.store.models.audit import AuditRow
from portal.store.models.base import Base
from portal.store.models.chunks import (
    ChunkEmbeddingRow,
    DocumentChunkRow,
    EmbeddingModelRow,
    SharedChunkRow,
    VocabularyRow,
)
from portal.store.models.conversations import (
    Bm25IndexStateRow,
    ChatSetupRow,
    CitationRow,
    ConversationDocumentOverrideRow,
    ConversationReaderRow,
    ConversationRow,
    DynamicConfigRow,
    EvaluationQuestionRow,
    IdempotencyKeyRow,
    MessageRow,
    NotificationRow,
    SelectionChangeRow,
    UserDocumentDefaultRow,
)
from portal.store.models.documents import (
    BulkChangeRow,
    BulkReportRow,
    CollectionRow,
    DocumentRevisionRow,
    DocumentRow,
    FolderMemberRow,
    FolderRow,
    FolderSourceRow,
    FolderStateRow,
    FolderSwitchRow,
    JobRow,
    SourceHostRow,
    SourceItemRow,
    SourceRunRow,
    StoredFilePartRow,
    StoredFileRow,
)
from portal.store.models.searches import SavedSearchRow
from portal.store.models.second_factors import (
    PasskeyRow,
    RecoveryCodeRow,
    SecondFactorFailureRow,
    SpentChallengeRow,
    TotpRow,
)

metadata = Base.metadata
