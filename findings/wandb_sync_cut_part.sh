#!/bin/bash
# What one expects: a run that was killed and went on, offline, has two folders of one id. `wandb sync first second` uploads both, in
# that order, as its help says of resumed runs, and repeating it uploads nothing twice. What a kill has left of a last record is lost.
# What happens: where the first file ends within a record, as any kill -9 may leave it, its whole records are uploaded, one error says
# that the run may still be running, the second part is not uploaded, and the status is 0. Repeated, the command uploads the first part
# once more, behind itself, and the second again not. With the first file cut back to its last whole record, both are uploaded, once.
# And where the second part begins at a step that the first has reached already, as after the last checkpoint, its rows are uploaded
# with other steps: 2, 3 and 4 become 4, 5 and 6. Seen by what the client sends to a stand-in of W&B's server on this machine; what the
# real one makes of it was not seen.
# Version: wandb 0.31.0
# Source: wandb-core, the program that wandb/cli/beta_sync.py asks to upload; W&B's file is a log of LevelDB behind 7 bytes
# Date: 2026-11-29
# Seen:
#     wandb                                    0.31.0
#     cut, first command: 1 2 3
#     cut, repeated: 1 2 3 1 2 3
#     whole, first command: 1 2 3 4 5 6
#     whole, repeated: 1 2 3 4 5 6
#     the values at these steps: 1 2 3 2 3 4

set -euo pipefail
there=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check wandb==0.31.0
venv/bin/python -m pip list --disable-pip-version-check 2>/dev/null | grep -E '^wandb '
export HOME=$there WANDB_ERROR_REPORTING=false WANDB_SILENT=true WANDB_API_KEY=local-$(printf '0%.0s' $(seq 40))
cat > server.py <<'END'
"""Answers what `wandb sync` asks of a server, on this machine alone, and keeps the rows that it is sent, by their line."""
import gzip, http.server, json, pathlib, sys

rows = {}
bucket = lambda: {"id": "b", "name": "one", "displayName": "one", "description": "", "config": "{}", "sweepName": None, "tags": [],
                  "historyLineCount": len(rows), "eventsLineCount": 0, "logLineCount": 0, "eventsTail": "[]", "notes": "",
                  "historyTail": json.dumps([json.dumps(rows[max(rows)])] if rows else []), "summaryMetrics": "{}",
                  "wandbConfig": '{"t": 1}', "project": {"id": "p", "name": "p", "entity": {"id": "e", "name": "e"}}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log_message = lambda *words: None

    def do_POST(self):
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        sent = gzip.decompress(sent) if self.headers.get("Content-Encoding") == "gzip" else sent
        self.answer(self.graphql(json.loads(sent)["query"]) if self.path == "/graphql" else self.stream(json.loads(sent or b"{}")))

    do_PUT = do_GET = lambda self: (self.rfile.read(int(self.headers.get("Content-Length") or 0)), self.answer({}))

    def answer(self, found):
        found = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(found)))
        self.end_headers()
        self.wfile.write(found)

    def graphql(self, query):
        if "RunResumeStatus" in query:
            return {"data": {"model": {"id": "p", "name": "p", "entity": {"id": "e", "name": "e"}, "bucket": bucket() if rows else None}}}
        if "psertBucket" in query:
            return {"data": {"upsertBucket": {"bucket": bucket(), "inserted": not rows}}}
        if "iewer" in query:
            return {"data": {"viewer": {"id": "u", "entity": "e", "username": "u", "email": "", "flags": "{}", "teams": {"edges": []}},
                             "serverInfo": {"cliVersionInfo": {}, "features": [], "latestLocalVersionInfo": None}}}
        if "reateRunFiles" in query:
            return {"data": {"createRunFiles": {"runID": "b", "uploadHeaders": [], "files": []}}}
        return {"data": {"serverInfo": {"features": []}}}

    def stream(self, sent):
        history = sent.get("files", {}).get("wandb-history.jsonl", {"offset": 0, "content": []})
        rows.update({history["offset"] + line: json.loads(text) for line, text in enumerate(history["content"])})
        found = [rows[line] for line in sorted(rows)]
        pathlib.Path(sys.argv[1]).write_text("".join(f"{row['_step']} {row['value']}\n" for row in found))
        return {"exitcode": None, "limits": {}}


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
pathlib.Path(sys.argv[1] + ".port").write_text(str(server.server_address[1]))
server.serve_forever()
END
cat > part.py <<'END'
import sys

import wandb

run = wandb.init(mode="offline", project="p", id="one", resume="allow", dir=sys.argv[1], settings=wandb.Settings(console="off"))
for step in map(int, sys.argv[2:]):
    run.log({"value": step}, step=step)
run.finish()
END
cat > end.py <<'END'
"""Half a record at the end of a file: the beginning of a chunk of 200 bytes, of which 20 are there."""
import sys

with open(sys.argv[1], "ab") as file:
    file.write(bytes(4) + (200).to_bytes(2, "little") + b"\1" + bytes(20))
END
steps() {  # that a server has in the end
    cut -d' ' -f"${2:-1}" "$1" | tr '\n' ' ' | sed 's/ $//'
}
for case in cut whole; do
    mkdir $case
    venv/bin/python part.py $case 1 2 3
    parts=($case/wandb/offline-run-*)
    [ $case = whole ] || venv/bin/python end.py "${parts[0]}"/*.wandb
    sleep 1.1  # the name of a folder is the second of its beginning
    venv/bin/python part.py $case 2 3 4
    parts=($case/wandb/offline-run-*)
    venv/bin/python server.py $case.rows &
    until [ -s $case.rows.port ]; do sleep 0.1; done
    export WANDB_BASE_URL=http://127.0.0.1:$(cat $case.rows.port)
    for time in first repeated; do
        venv/bin/wandb sync "${parts[@]}" > $case.$time.txt 2>&1
        cp $case.rows $case.$time
    done
    echo "$case, first command: $(steps $case.first)"
    echo "$case, repeated: $(steps $case.repeated)"
done
echo "the values at these steps: $(steps whole.first 2)"
found="$(steps cut.first), $(steps cut.repeated), $(steps whole.first), $(steps whole.repeated), $(steps whole.first 2)"
[ "$found" = "1 2 3, 1 2 3 1 2 3, 1 2 3 4 5 6, 1 2 3 4 5 6, 1 2 3 2 3 4" ] || { echo "this has changed"; exit 1; }
