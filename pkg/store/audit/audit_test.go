package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/store/audit"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

const secret = "sk-canary-0451"

// member is an agent's journal, trimmed as membership has it.
// keeper is the function that keeps what outlives a journal.
type keeper = func(ctx context.Context, before uint64) error

func member(t *testing.T, bt *broker.Storage, a team.AgentID, incarnation uint64, outlives keeper) *journal.Journal {
	t.Helper()
	j, _, err := journal.Open(t.Context(), bt, a, incarnation, journal.Options{Keep: time.Nanosecond, Outlives: outlives})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func keep(bt *broker.Storage, a team.AgentID) keeper {
	return func(ctx context.Context, before uint64) error { return audit.Keep(ctx, bt, a, before) }
}

func put(t *testing.T, j *journal.Journal, r journal.Record) journal.Record {
	t.Helper()
	r, err := j.Append(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// asks is a turn that calls bash under these ids.
func asks(task team.TaskID, ids ...string) journal.Record {
	var reply model.Reply
	for _, id := range ids {
		reply.Message.ToolCalls = append(reply.Message.ToolCalls, model.ToolCall{ID: id, Name: "bash", Arguments: command(id)})
	}
	data, err := json.Marshal(reply)
	if err != nil {
		panic(err)
	}
	return journal.Record{Kind: journal.Turn, TaskID: task, Turn: data}
}

func command(id string) string { return fmt.Sprintf(`{"command":"echo %s %s"}`, id, secret) }

// answers is the result of a call.
func answers(task team.TaskID, id string, a *team.Account) journal.Record {
	return journal.Record{Kind: journal.Result, TaskID: task, Result: &journal.ToolResult{CallID: id, Name: "bash", Content: "prints " + id + secret, Account: a, IsError: a != nil && a.Code != ""}}
}

func compact(t *testing.T, j *journal.Journal) journal.Record {
	t.Helper()
	return put(t, j, journal.Record{Kind: journal.Compact, Text: "full", Context: []byte(`{}`)})
}

func read(t *testing.T, bt *broker.Storage, q audit.Query) []audit.Entry {
	t.Helper()
	entries, err := audit.Read(t.Context(), bt, q)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// show is entries in short.
func show(entries []audit.Entry) string {
	var s []string
	for _, e := range entries {
		s = append(s, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Agent, e.Call, e.Outcome)))
	}
	return strings.Join(s, ", ")
}

func TestEntry(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j := member(t, bt, "coder-1", 3, nil)
	put(t, j, asks("T-001", "a", "b", "old"))
	three := 3
	stored := put(t, j, answers("T-001", "a", &team.Account{Arguments: team.DigestOf(command("a")), Exit: &three, Sandbox: team.Confined,
		Rule: "Bash(echo *)", Grants: []team.Grant{{Approval: "0a1b", By: "user"}}}))
	put(t, j, answers("T-001", "b", &team.Account{Arguments: team.DigestOf(command("b")), Tool: "run", Code: team.PermissionDenied, Rule: "Bash(echo b *)"}))
	put(t, j, answers("T-001", "old", nil))

	entries := read(t, bt, audit.Query{})
	if got := show(entries); got != "coder-1 a ok, coder-1 b error, coder-1 old ok" {
		t.Fatal(got)
	}
	got, err := json.Marshal(entries[0])
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"seq":%d,"at":%q,"agent_id":"coder-1","incarnation":3,"task_id":"T-001","call_id":"a","tool":"bash","arguments":%q,"result":%q,"outcome":"ok","exit_code":3,`+
		`"sandbox":"confined","rule":"Bash(echo *)","grants":[{"approval":"0a1b","by":"user"}]}`,
		stored.Seq, stored.At.Format(time.RFC3339Nano), team.DigestOf(command("a")), team.DigestOf("prints a"+secret))
	if string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	// Of a program that kept no account, the turn tells the arguments.
	if e := entries[2]; e.Arguments != team.DigestOf(command("old")) || entries[1].Code != team.PermissionDenied || entries[1].Tool != "run" || entries[1].Called != "bash" {
		t.Errorf("%+v", entries)
	}
}

func TestOutcomes(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j := member(t, bt, "a", 1, nil)
	put(t, j, asks("", "1", "2", "3", "4"))
	put(t, j, answers("", "1", &team.Account{State: team.CallNotRun}))
	put(t, j, answers("", "2", &team.Account{State: team.CallUnknown}))
	put(t, j, answers("", "3", &team.Account{State: "of a newer program"}))
	for range 2 { // what was begun counts although nothing is known of its end
		if got := show(read(t, bt, audit.Query{})); got != "a 4 unknown, a 1 not_run, a 2 unknown, a 3 unknown" {
			t.Error(got)
		}
		put(t, j, journal.Record{Kind: journal.End})
	}
	put(t, j, journal.Record{Kind: journal.Result, TaskID: "T-002", Result: &journal.ToolResult{CallID: "4", Name: "update_task", Outcome: &journal.Outcome{Task: "T-001"}}})
	if entries := read(t, bt, audit.Query{Tool: "update_task"}); show(entries) != "a 4 ok" || entries[0].Task != "T-001" {
		t.Errorf("%+v", entries)
	}
}

func TestQuery(t *testing.T) {
	bt := brokertest.Team(t, "t")
	for _, a := range []team.AgentID{"a", "a-b"} {
		j := member(t, bt, a, 1, keep(bt, a))
		put(t, j, asks("", "1"))
		put(t, j, answers("", "1", nil))
		compact(t, j)
		compact(t, j)
		put(t, j, asks("", "2"))
		put(t, j, answers("", "2", nil))
	}
	all := read(t, bt, audit.Query{})
	for name, tt := range map[string]struct {
		q    audit.Query
		want string
	}{
		"all":      {audit.Query{}, "a 1 ok, a 2 ok, a-b 1 ok, a-b 2 ok"},
		"agent":    {audit.Query{Agent: "a"}, "a 1 ok, a 2 ok"},
		"since":    {audit.Query{Since: all[2].At}, "a-b 1 ok, a-b 2 ok"},
		"tool":     {audit.Query{Tool: "bash"}, "a 1 ok, a 2 ok, a-b 1 ok, a-b 2 ok"},
		"no tool":  {audit.Query{Tool: "Bash"}, ""},
		"no agent": {audit.Query{Agent: "b"}, ""},
		"later":    {audit.Query{Since: time.Now().Add(time.Hour)}, ""},
	} {
		if got := show(read(t, bt, tt.q)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// Whatever is trimmed, and wherever the process is killed, each call stands there once, with the same words as before.
func TestTrimKeepsAll(t *testing.T) {
	killed := errors.New("killed")
	for name, outlives := range map[string]func(keeper) keeper{
		"trimmed": func(keep keeper) keeper { return keep },
		"killed before it is kept": func(keep keeper) keeper {
			first := true
			return func(ctx context.Context, before uint64) error {
				if first {
					first = false
					return killed
				}
				return keep(ctx, before)
			}
		},
		"killed before it is removed": func(keep keeper) keeper {
			first := true
			return func(ctx context.Context, before uint64) error {
				err := keep(ctx, before)
				if first && err == nil {
					first, err = false, killed
				}
				return err
			}
		},
		"kept twice": func(keep keeper) keeper {
			return func(ctx context.Context, before uint64) error {
				if err := keep(ctx, before); err != nil {
					return err
				}
				return keep(ctx, before)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bt := brokertest.Team(t, "t")
			j := member(t, bt, "a", 1, outlives(keep(bt, "a")))
			var before []audit.Entry
			for i := range 5 {
				id := fmt.Sprint(i)
				put(t, j, asks("", id))
				put(t, j, answers("", id, &team.Account{Arguments: team.DigestOf(command(id))}))
				before = read(t, bt, audit.Query{})
				compact(t, j)
				if after := read(t, bt, audit.Query{}); len(before) != i+1 || !slices.EqualFunc(before, after, same) {
					t.Fatalf("%s\nbefore: %s", show(after), show(before))
				}
			}
			left := 0
			if err := journal.Each(t.Context(), bt, 1, func(journal.Record) error { left++; return nil }); err != nil || left > 5 {
				t.Errorf("%d records are left, %v", left, err)
			}
			noSecret(t, bt)
		})
	}
}

func same(a, b audit.Entry) bool {
	one, _ := json.Marshal(a) // plain data
	two, _ := json.Marshal(b)
	return string(one) == string(two)
}

// noSecret fails if something of what was said is in what is kept.
func noSecret(t *testing.T, bt *broker.Storage) {
	t.Helper()
	names, err := bt.Files.List(t.Context(), "audit/a/")
	if err != nil || len(names) == 0 {
		t.Fatalf("%q, %v", names, err)
	}
	entries, err := json.Marshal(read(t, bt, audit.Query{}))
	if err != nil || strings.Contains(string(entries), secret) || strings.Contains(string(entries), "prints") {
		t.Errorf("%s", entries)
	}
}

// A record that cannot be read leaves a trace, read, trimmed or set aside.
func TestUnreadable(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j := member(t, bt, "a", 1, nil)
	put(t, j, asks("", "1"))
	last := put(t, j, answers("", "1", nil))
	seq, err := bt.Logs.Append(t.Context(), subject.Log("t", "a"), []byte(`{"v":2,"kind":"result"`), last.Seq)
	if err != nil {
		t.Fatal(err)
	}
	want := "a 1 ok, a  unreadable"
	if got := show(read(t, bt, audit.Query{})); got != want {
		t.Error(got)
	}
	if _, err := journal.SkipUnreadable(t.Context(), bt, "a", nil); err != nil {
		t.Fatal(err)
	}
	entries := read(t, bt, audit.Query{})
	if got := show(entries); got != want || entries[1].Seq != seq {
		t.Error(got)
	}
	j = member(t, bt, "a", 2, keep(bt, "a"))
	compact(t, j)
	compact(t, j)
	if got := show(read(t, bt, audit.Query{})); got != want {
		t.Error(got)
	}
}

// What was not read up to the end of what is to go is not kept, so it is not removed either.
func TestKeepTooFar(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j := member(t, bt, "a", 1, nil)
	put(t, j, asks("", "1"))
	if err := audit.Keep(t.Context(), bt, "a", 99); team.CodeOf(err) != team.InvalidState {
		t.Error(err)
	}
}
