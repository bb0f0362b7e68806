package boardtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// Records answer as a bucket does.
func TestRecords(t *testing.T) {
	got, want := answers(t, &Records{}), answers(t, brokertest.Team(t, "t").Bucket)
	if got != want {
		t.Errorf("in memory:\n%s\na bucket:\n%s", got, want)
	}
}

func answers(t *testing.T, r board.Records) string {
	var b strings.Builder
	say := func(what string, v any, err error) { fmt.Fprintln(&b, what, v, team.CodeOf(err)) }
	put := func(key, value string, revision uint64) {
		seq, err := r.Put(t.Context(), key, []byte(value), revision)
		say("put "+key, seq, err)
	}
	put("task.1", "one", 0)
	put("task.1", "other", 0)
	put("task.1", "one", 0) // the very write that is stored: it counts as made
	put("task.2", "two", 0)
	put("graph", "g", 0)
	put("task.1", "uno", 1)
	put("task.1", "late", 1)
	for _, value := range []string{"one", "uno", "never"} {
		seq, err := r.PutAgain(t.Context(), "task.1", []byte(value), 0)
		say("again "+value, seq, err)
	}
	for _, key := range []string{"task.1", "task.3", "graph"} {
		e, err := r.Get(t.Context(), key)
		say("get "+key, fmt.Sprintf("%s %d", e.Value, e.Revision), err)
	}
	for _, filter := range []string{"task.>", "task.1", "task.*", "nothing"} {
		all, err := r.Load(t.Context(), filter)
		say("load "+filter, entries(all), err)
		var each, past []broker.Entry
		err = r.Each(t.Context(), func(e broker.Entry) error { each = append(each, e); return nil }, filter)
		say("each "+filter, entries(each), err)
		err = r.Past(t.Context(), 2, func(e broker.Entry) error { past = append(past, e); return nil }, filter)
		say("past "+filter, entries(past), err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Put(ended, "task.4", []byte("four"), 0)
	say("ended", "", err)
	return b.String()
}

func entries(all []broker.Entry) (said []string) {
	for _, e := range all {
		said = append(said, fmt.Sprintf("%s=%s@%d", e.Key, e.Value, e.Revision))
	}
	return said
}
