// Starts the small modules that each page may need. Every page works without any of them.
import { watchChat } from "./chat.js";
import { watchCitations } from "./citations.js";
import { watchComposing } from "./composing.js";
import { watchDialog } from "./dialog.js";
import { watchFocus } from "./focus.js";
import { watchMenus } from "./menus.js";
import { watchNotifications } from "./notifications.js";
import { watchRequests } from "./requests.js";
import { watchSide } from "./side.js";
import { watchToasts } from "./toasts.js";
import { watchUploads } from "./upload.js";
import { rememberTimezone } from "./timezone.js";
import { watchCopying } from "./copying.js";

watchToasts();
watchRequests();
watchNotifications();
watchDialog();
watchMenus();
watchUploads();
watchFocus();
watchCopying();
watchComposing();
watchCitations();
watchSide();
watchChat();
rememberTimezone();
