// Starts the small modules that each page may need. Every page works without any of them.
import { watchChat } from "./chat.js";
import { watchCitations } from "./citations.js";
import { watchCompleting } from "./completing.js";
import { watchComposing } from "./composing.js";
import { watchDialog } from "./dialog.js";
import { watchList } from "./document-list.js";
import { watchDrafts } from "./drafts.js";
import { watchFocus } from "./focus.js";
import { watchKeys } from "./keys.js";
import { watchMenus } from "./menus.js";
import { watchNotifications } from "./notifications.js";
import { watchPanes } from "./panes.js";
import { watchPages } from "./pages.js";
import { watchPasskeys } from "./passkeys.js";
import { watchRequests } from "./requests.js";
import { watchSearching } from "./searching.js";
import { watchSelecting } from "./selecting.js";
import { watchSession } from "./session.js";
import { watchSide } from "./side.js";
import { watchToasts } from "./toasts.js";
import { watchUploads } from "./upload.js";
import { rememberTimezone } from "./timezone.js";
import { watchCopying } from "./copying.js";

const starts = [
  watchToasts, watchRequests, watchNotifications, watchSession, watchKeys, watchDialog, watchMenus, watchUploads,
  watchPages, watchFocus, watchCopying, watchDrafts, watchCompleting, watchComposing, watchCitations, watchPasskeys,
  watchSearching, watchSelecting, watchList, watchPanes, watchSide, watchChat, rememberTimezone,
];
for (const start of starts) start();
