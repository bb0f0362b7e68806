package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"agentteam/pkg/team"
)

// Requests use the names of answers. These are other names, from older requests or other operations; they are accepted
// too, and no description mentions them.
var otherNames = map[string]map[string]string{ // by operation: the other name, and the one that counts
	"add-tasks":       {"depends_on": "dependencies", "reserved_for": "assignee"}, // of each task
	"assign-task":     {"to": "assignee"},
	"complete-task":   {"summary": "result_summary"},
	"send-message":    {"text": "content", "reply_to": "in_reply_to"},
	"answer-question": {"text": "content"},
	"spawn-members":   {"name": "agent_id"},
}

// otherParameters apply to all operations that have the valid name.
var otherParameters = map[string]string{"after": "page", "page": "after"}

// rename replaces other names in a request with the valid ones. takes reports which query parameters the operation has.
// Errors: InvalidArgument if a request has both.
func rename(r *http.Request, operation string, takes func(parameter string) bool) error {
	query := r.URL.Query()
	for other, name := range otherParameters {
		if !query.Has(other) || takes(other) || !takes(name) {
			continue
		}
		if query.Has(name) {
			return twice("query", other, name)
		}
		query[name] = query[other]
		query.Del(other)
		r.URL.RawQuery = query.Encode()
	}
	others := otherNames[operation]
	if others == nil || r.Body == nil {
		return nil
	}
	data, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(data))
	if err != nil || !utf8.Valid(data) {
		return nil // whoever reads it next says what is wrong
	}
	var body map[string]json.RawMessage
	if json.Unmarshal(data, &body) != nil {
		return nil
	}
	if operation == "add-tasks" {
		err = renameEach(body, "tasks", others)
	} else {
		err = renameKeys(body, "body", others)
	}
	if data, merr := json.Marshal(body); err == nil && merr == nil && body != nil {
		r.Body = io.NopCloser(bytes.NewReader(data))
		r.ContentLength = int64(len(data))
	}
	return err
}

// renameEach is renameKeys for the objects of a list.
func renameEach(body map[string]json.RawMessage, list string, others map[string]string) error {
	var items []json.RawMessage
	if json.Unmarshal(body[list], &items) != nil {
		return nil
	}
	for i, item := range items {
		var object map[string]json.RawMessage
		if json.Unmarshal(item, &object) != nil || object == nil {
			continue
		}
		if err := renameKeys(object, fmt.Sprintf("body.%s[%d]", list, i), others); err != nil {
			return err
		}
		items[i], _ = json.Marshal(object) // of what was read from JSON
	}
	body[list], _ = json.Marshal(items)
	return nil
}

func renameKeys(object map[string]json.RawMessage, at string, others map[string]string) error {
	for other, name := range others {
		value, ok := object[other]
		if !ok {
			continue
		}
		if _, both := object[name]; both {
			return twice(at, other, name)
		}
		object[name] = value
		delete(object, other)
	}
	return nil
}

func twice(at, other, name string) error {
	return team.Errorf(team.InvalidArgument, "%s.%s: it is another name of %s, which is there too", at, other, name).WithHint("leave %s out", other)
}
