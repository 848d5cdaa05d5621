#!/bin/sh
# Use the portal over plain HTTP: sign in, upload a file, wait until it is ready, search, ask a question,
# and verify the citations of the answer.
#
#     sh examples/curl.sh handbook.md "How many days of leave do I have?"
#
# PORTAL_URL       address of the portal; default http://127.0.0.1:8000
# PORTAL_USER      user to sign in as; default admin
# PORTAL_PASSWORD  their password; prompted for if unset
# PORTAL_TOKEN     instead of both: a personal access token with the scope `write`
#
# Requires curl, and python3 for JSON.

set -eu
umask 077

PORTAL_URL=${PORTAL_URL:-http://127.0.0.1:8000}
PORTAL_USER=${PORTAL_USER:-admin}
MAX_WAIT_S=300
# JSON is UTF-8, regardless of the encoding of the terminal.
export PORTAL_URL PORTAL_USER PYTHONUTF8=1

fail() {
    echo "curl.sh: $*" >&2
    exit 1
}

[ $# -eq 2 ] || fail 'usage: sh examples/curl.sh FILE "QUESTION"'
file=$1
question=$2
[ -f "$file" ] && [ -r "$file" ] || fail "no file to read at $file"
for program in curl python3; do
    command -v "$program" > /dev/null || fail "needs $program, which is not installed"
done

# Pass secrets to curl in a private file and to Python in the environment: `ps` shows the arguments of
# programs to all users.
work=$(mktemp -d)
: > "$work/secrets"
signed_in=
as_json='Content-Type: application/json'

leave() {
    # End the session that this script started.
    [ -z "$signed_in" ] || send POST /api/auth/revoke --header "$as_json" --data '{}' > /dev/null 2>&1 || true
    rm -rf "$work"
}
trap leave EXIT
trap 'exit 1' HUP INT TERM

# --- HTTP and JSON --------------------------------------------------------------------------------

# send METHOD PATH [CURL OPTION …]: print the status and store the response in $work/answer.
send() {
    method=$1 path=$2
    shift 2
    curl --silent --show-error --max-time "$MAX_WAIT_S" --config "$work/secrets" \
        --request "$method" --output "$work/answer" --write-out '%{http_code}' "$@" \
        "${PORTAL_URL%/}$path"
}

# request METHOD PATH [CURL OPTION …]: the same, but exit with a message if the request fails.
request() {
    status=$(send "$@") || fail "no answer from $PORTAL_URL: is the portal running there?"
    case $status in
        2??) ;;
        *) fail "$1 $2 was refused ($status): $(get error.message)" ;;
    esac
}

# post PATH NAME VALUE …: send a JSON object of strings.
post() {
    path=$1
    shift
    python3 -c 'import json, sys; print(json.dumps(dict(zip(sys.argv[1::2], sys.argv[2::2]))))' \
        "$@" > "$work/body"
    post_body "$path"
}

post_body() {
    request POST "$1" --header "$as_json" --data-binary "@$work/body"
}

# get PATH: print a part of the response, such as documents.0.id; nothing if it is missing.
get() {
    python3 -c '
import json, sys
part = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
    part = part[int(key)] if isinstance(part, list) else part[key]
print(part)' "$work/answer" "$1" 2> /dev/null || true
}

# each LIST FORMAT: print each item of a list in the response.
each() {
    python3 -c '
import json, os, sys
for one in json.load(open(sys.argv[1]))[sys.argv[2]]:
    # Remove line breaks from excerpts, and make URLs absolute.
    one = {key: " ".join(value.split()) if isinstance(value, str) else value
           for key, value in one.items()}
    one["url"] = os.environ["PORTAL_URL"].rstrip("/") + (one.get("url") or "")
    print(sys.argv[3].format(**one))' "$work/answer" "$1" "$2"
}

# --- sign in --------------------------------------------------------------------------------------

if [ -z "${PORTAL_TOKEN:-}" ]; then
    if [ -z "${PORTAL_PASSWORD:-}" ]; then
        [ -t 0 ] || fail "no terminal to prompt for a password: set PORTAL_PASSWORD or PORTAL_TOKEN"
        printf 'Password of %s: ' "$PORTAL_USER" >&2
        trap 'stty echo; exit 1' HUP INT TERM
        stty -echo
        IFS= read -r PORTAL_PASSWORD
        stty echo
        trap 'exit 1' HUP INT TERM
        echo >&2
    fi
    export PORTAL_PASSWORD
    python3 -c '
import json, os
print(json.dumps({"username": os.environ["PORTAL_USER"],
                  "password": os.environ["PORTAL_PASSWORD"]}))' > "$work/body"
    post_body /api/auth/token
    PORTAL_TOKEN=$(get access_token)
    unset PORTAL_PASSWORD
    signed_in=yes
    echo "Signed in as $PORTAL_USER."
fi
# `printf` is a shell builtin, so `ps` does not show the token.
printf 'header = "Authorization: Bearer %s"\n' "$PORTAL_TOKEN" > "$work/secrets"

# --- upload and wait ------------------------------------------------------------------------------

# Quoted, because commas and semicolons have a meaning in curl.
quoted=$(printf '%s' "$file" | sed 's/[\\"]/\\&/g')
request POST /api/knowledge/documents --form "file=@\"$quoted\""
document=$(get documents.0.id)
[ -n "$document" ] || fail "$PORTAL_URL is not a portal"
echo "Uploaded $file as $document."

waited_s=0
while :; do
    request GET "/api/knowledge/documents/$document"
    status=$(get status)
    case $status in
        ready) break ;;
        failed) fail "the document could not be read: $(get error.message)" ;;
    esac
    [ "$waited_s" -lt "$MAX_WAIT_S" ] || fail "still $status after $MAX_WAIT_S s: is a worker running?"
    sleep 1
    waited_s=$((waited_s + 1))
done
echo "It is ready."

# --- search ---------------------------------------------------------------------------------------

post /api/knowledge/search query "$question"
printf '\nFound for “%s”:\n' "$question"
each results '- {title} ({confidence:.0%})
  {excerpt}
  {url}'

# --- ask and verify the citations -----------------------------------------------------------------

post /api/conversations
conversation=$(get id)
post "/api/conversations/$conversation/messages" content "$question"
printf '\n%s\n\n' "$(get content)"
each citations '[{marker}] {title}: {excerpt}
    {url}'
each citations '{marker} {id}' > "$work/citations"
while read -r marker citation; do
    request GET "/api/citations/$citation/verify"
    [ "$(get stands)" = True ] || fail "the quotation [$marker] is not in the document"
    echo "[$marker] matches the document word for word."
done < "$work/citations"
