#!/usr/bin/env python3
"""Works with a team over HTTP, by the /team endpoints and Python's own library.

    team.py goal "count the Go files"     sets a goal, follows it, prints the result
    team.py task "write the tests"        puts a task on the board
    team.py follow                        follows what happens, from the beginning

A goal goes on without this program: it may be ended and `follow` goes on.
"""

import argparse
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

TRIES = 5  # in a row, until a lost stream is given up
PASSING = (502, 503, 504)  # what is answered while one process ends and another begins


class Team:
    """One session of one user."""

    def __init__(self, url, token, user, session):
        self.url, self.token = url.rstrip("/"), token
        self.names = {"user_id": user, "session_id": session}

    def open(self, method, path, body=None, query=None):
        """Makes a request, and returns the answer to be read. Raises Refused or ConnectionError."""
        url = self.url + path
        if query is not None:
            url += "?" + urllib.parse.urlencode({**self.names, **query})
        request = urllib.request.Request(url, method=method)
        request.add_header("Authorization", "Bearer " + self.token)
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps({**self.names, **body}).encode()
        try:
            return urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read()) from None
        except urllib.error.URLError as error:
            raise ConnectionError(f"{self.url} cannot be reached: {error.reason}") from None

    def get(self, path, **query):
        with self.open("GET", path, query=query) as answer:
            return json.load(answer)

    def post(self, path, **body):
        with self.open("POST", path, body=body) as answer:
            return json.load(answer)

    def count(self):
        """How many envelopes there are so far."""
        return self.get("/team/history")["event_count"]

    def start(self, goal):
        """Sets a goal. The stream that answers is left at once: subscribe() is one that
        can be taken up again."""
        self.open("POST", "/team/stream", body={"message": goal}).close()

    def subscribe(self, after):
        """Yields the envelopes behind a place, until the team is at work no more. A stream
        that breaks off is taken up again where it was."""
        tries = 0
        while True:
            try:
                with self.open("GET", "/team/subscribe", query={"after": after}) as stream:
                    for frame in frames(stream):
                        if frame["type"] == "complete":
                            return
                        if frame["type"] == "error":  # of the stream; a goal that fails ends it as well
                            problem = frame["error"]
                            break
                        after, tries = after + 1, 0
                        yield frame["envelope"]
                    else:
                        problem = "the stream broke off"
            except Refused as error:
                if error.status not in PASSING:
                    raise
                problem = error
            except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
                problem = error
            tries += 1
            if tries > TRIES:
                raise Refused(None, f"the stream is lost: {problem}")
            time.sleep(0.2 * tries)


class Refused(Exception):
    """A request was refused, and why."""

    def __init__(self, status, detail):
        try:
            detail = json.loads(detail)["detail"]
        except (ValueError, KeyError, TypeError):
            pass
        if isinstance(detail, bytes):
            detail = detail.decode(errors="replace")
        super().__init__(f"{status}: {detail}" if status else detail)
        self.status = status


def frames(stream):
    """Yields the frames of an event stream: one line of data each."""
    for line in stream:
        if line.startswith(b"data: "):
            yield json.loads(line[len(b"data: "):])


def show(envelopes):
    """Prints envelopes as people read them."""
    texts = {}
    for envelope in envelopes:
        who, event = envelope["agent_id"], envelope["event"]
        kind = event["type"]
        if kind == "TEXT_MESSAGE_CONTENT":
            texts[event["message_id"]] = texts.get(event["message_id"], "") + event["delta"]
        elif kind == "TEXT_MESSAGE_END":
            say(who, texts.pop(event["message_id"], ""))
        elif kind == "TOOL_CALL_START":
            say(who, "calls " + event["tool_call_name"])
        elif kind == "USER_MESSAGE":
            say("user", f"to {who}: {event['content']}")
        elif kind == "TEAM_MESSAGE":
            say(event["from_agent_id"], f"to {who}: {event['content']}")
        elif kind == "RUN_ERROR":
            say(who, "error: " + event["message"])


def say(who, text):
    # Texts come from models: nothing of them is to reach the terminal but letters.
    lines = ["".join(c if c.isprintable() else " " for c in line) for line in text.splitlines()]
    print(f"{who}: " + "\n    ".join(lines), flush=True)


def read_token(name):
    """The token is the first line of its file. It is never printed, whatever it is."""
    with open(name) as file:
        token = file.readline().strip()
    if not token.isascii() or not token.isprintable() or " " in token or not token:
        raise Refused(None, f"{name} holds no token")
    return token


def main():
    parser = argparse.ArgumentParser(description="Works with a team over HTTP.")
    parser.add_argument("--url", default=os.environ.get("AGENTTEAM_URL"), help="of the API; default: AGENTTEAM_URL")
    parser.add_argument("--token-file", default=os.environ.get("AGENTTEAM_API_TOKEN_FILE"),
                        help="that holds the token; default: AGENTTEAM_API_TOKEN_FILE")
    parser.add_argument("--user", default="me")
    parser.add_argument("--session", default="default")
    parser.add_argument("what", choices=["goal", "task", "follow"])
    parser.add_argument("text", nargs="?", help="the goal, or the title of the task")
    args = parser.parse_args()
    if not args.url or not args.token_file:
        parser.error("name the API by --url, and its token by --token-file")
    if args.what != "follow" and not args.text:
        parser.error(f"say what the {args.what} is")
    team = Team(args.url, read_token(args.token_file), args.user, args.session)

    if args.what == "task":
        task = team.post("/team/tasks", title=args.text)
        print(f"{task['task_id']} is on the board: {task['title']}")
        return
    after = 0
    if args.what == "goal":
        after = team.count()
        team.start(args.text)
    show(team.subscribe(after))
    for task in team.get("/team/tasks"):
        print(f"{task['task_id']} {task['status']}: {task['title']}")


if __name__ == "__main__":
    try:
        main()
    except (Refused, OSError) as problem:
        sys.exit(f"team.py: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
