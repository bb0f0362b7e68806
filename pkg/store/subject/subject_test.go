package subject_test

import (
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// These names are the protocol: other programs send to them.
func TestNames(t *testing.T) {
	stream := func(name string, subjects []string) string { return name + " " + strings.Join(subjects, " ") }
	for got, want := range map[string]string{
		subject.Heartbeat("t", "coder-1"):               "at.t.hb.coder-1",
		subject.Heartbeats("t"):                         "at.t.hb.*",
		subject.Live("t", "coder-1"):                    "at.t.live.coder-1",
		subject.LiveAll("t"):                            "at.t.live.>",
		subject.Control("t", "coder-1", subject.Offer):  "at.t.ctl.coder-1.offer",
		subject.Inbox("t", "leader", "coder-1"):         "at.t.inbox.leader.coder-1",
		subject.Broadcast("t", "coder-1"):               "at.t.all.coder-1",
		subject.Dead("t", "coder-1"):                    "at.t.dead.coder-1",
		strings.Join(subject.Mail("t", "coder-1"), " "): "at.t.inbox.coder-1.> at.t.all.>",
		stream(subject.Messages("t")):                   "AT_t_MSG at.t.inbox.> at.t.all.> at.t.dead.>",
		stream(subject.Events("t")):                     "AT_t_EVT at.t.evt.>",
		stream(subject.Logs("t")):                       "AT_t_LOG at.t.log.>",
		subject.Event("t", "coder-1", team.RunStarted):  "at.t.evt.coder-1.run_started",
		subject.Log("t", "coder-1"):                     "at.t.log.coder-1",
		subject.Bucket("t"):                             "at-t",
		subject.Files("t"):                              "at-t-files",
		subject.Pool:                                    "at.pool.spawn",
		subject.Storage:                                 "at.storage",
		subject.PoolOf(""):                              "at.pool.spawn",
		subject.PoolOf("qwen3:8b."):                     "at.pool.spawn.cXdlbjM6OGIu",
		subject.KeyTask("T-001"):                        "task.T-001",
		subject.KeyMember("coder-1"):                    "member.coder-1",
		subject.KeyRegistered("t"):                      "team.t",
		subject.KeyLead("t"):                            "lead.t",
		subject.Service("leader"):                       "agentteam-leader",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestParseKey(t *testing.T) {
	for key, want := range map[string]struct {
		kind subject.Kind
		name string
	}{
		subject.KeyTask("T-1000"):      {subject.Task, "T-1000"},
		subject.KeyMember("task-1"):    {subject.Member, "task-1"},
		subject.KeyRegistered("team"):  {subject.Registered, "team"},
		subject.KeyLead("lead-member"): {subject.Lead, "lead-member"},
		subject.KeyTeam:                {subject.Other, "team"},
		subject.KeySequence:            {subject.Other, "seq.task"},
		subject.KeyGraph:               {subject.Other, "graph"},
	} {
		if kind, name := subject.ParseKey(key); kind != want.kind || name != want.name {
			t.Errorf("ParseKey(%s) = %v, %s, want %v", key, kind, name, want)
		}
	}
}

func TestSender(t *testing.T) {
	for _, s := range []string{subject.Inbox("t", "leader", "coder-1"), subject.Broadcast("t", "coder-1"), subject.Heartbeat("t", "coder-1")} {
		if from := subject.Sender(s); from != "coder-1" {
			t.Errorf("sender of %s is %q", s, from)
		}
	}
}

// Two incarnations of two members never share a consumer, whatever the names.
func TestConsumer(t *testing.T) {
	seen := map[string]team.AgentID{}
	for _, a := range []team.AgentID{"a", "a-1", "a-1-1", "a-11", "a--1"} {
		for _, n := range []uint64{1, 11, 111} {
			name := subject.Consumer(a, n)
			if other, ok := seen[name]; ok {
				t.Errorf("%s and %s share the consumer %s", a, other, name)
			}
			seen[name] = a
			if who, incarnation := subject.ParseConsumer(name); who != a || incarnation != n {
				t.Errorf("ParseConsumer(%s) = %s, %d", name, who, incarnation)
			}
		}
	}
}

func TestParseMessages(t *testing.T) {
	for _, id := range []team.TeamID{"a", "a-MSG", "a-1"} {
		name, _ := subject.Messages(id)
		if got := subject.ParseMessages(name); got != id {
			t.Errorf("ParseMessages(%s) = %s", name, got)
		}
	}
	for _, name := range []string{"", "AT_a_EVT", "KV_at-a", "MSG"} {
		if got := subject.ParseMessages(name); got != "" {
			t.Errorf("ParseMessages(%s) = %s", name, got)
		}
	}
}

func TestForeignConsumer(t *testing.T) {
	for _, name := range []string{"", "x", "xyz-abc", "8s8wiyJZ3bfQ7eHI4yrCfD_1"} {
		if who, _ := subject.ParseConsumer(name); who != "" {
			t.Errorf("ParseConsumer(%s) = %s", name, who)
		}
	}
}

// No team's streams hold what is another team's, also where one name begins the
// other.
func TestTeamsDoNotMix(t *testing.T) {
	_, mail := subject.Messages("a")
	_, events := subject.Events("a")
	_, logs := subject.Logs("a")
	filters := slices.Concat(mail, events, logs)
	for _, s := range []string{subject.Inbox("a-b", "x", "y"), subject.Broadcast("a-b", "x"), subject.Log("a-b", "x"), subject.Event("a-b", "x", team.Custom)} {
		for _, f := range filters {
			if strings.HasPrefix(s, strings.TrimSuffix(f, ">")) {
				t.Errorf("%s matches %s", s, f)
			}
		}
	}
}

func TestHidden(t *testing.T) {
	stream, _ := subject.Messages("red-1")
	for _, name := range []string{subject.Control("red", "ann", subject.Stop), subject.Heartbeat("red", "ann"), subject.Event("red", "ann", "TASK_CREATED"), subject.Pool, stream, "$KV.at-red.task.T-001", "KV_at-red", "OBJ_" + subject.Files("red"), "$JS.API.INFO", "nats://127.0.0.1:4222"} {
		if got := subject.Hidden("nobody serves " + name + ": away"); got != "nobody serves (internal): away" {
			t.Errorf("of %s it leaves %q", name, got)
		}
	}
	for _, text := range []string{"look at least at main.go", "record task.T-001 cannot be read", "at.home", "AT_once", "$KVx"} {
		if got := subject.Hidden(text); got != text {
			t.Errorf("of %q it leaves %q", text, got)
		}
	}
}
