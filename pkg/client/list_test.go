package client_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// lists returns what List answers to some queries, as JSON.
func (r *rig) lists(t *testing.T) string {
	t.Helper()
	blocked := true
	var pages []team.Page
	for _, q := range []team.Query{{}, {Limit: 2}, {Blocked: &blocked}, {Text: "TWO"}, {IDs: []team.TaskID{"T-003"}}, {Limit: 1}} {
		p, err := r.Board().List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, p)
	}
	data, err := json.MarshalIndent(pages, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A list is the same whether the index answers, nobody leads the team, or who leads
// it does not answer.
func TestListAnyway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(t, 2)
	b := board.New(r.bt.Bucket, board.Options{})
	created, err := b.Create(t.Context(), "leader", team.NewTask{Title: "task two", Dependencies: []team.TaskID{"T-001"}}, team.NewTask{Title: "damaged"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.bt.Bucket.Put(t.Context(), subject.KeyTask("T-004"), []byte("{"), created[1].Revision); err != nil {
		t.Fatal(err)
	}
	alone := r.lists(t)

	asked := make(chan struct{}, 100)
	sub, err := r.bt.Conn.NATS().Subscribe(subject.Query("t"), func(*nats.Msg) { asked <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	if err := r.bt.Conn.Flush(t.Context()); err != nil { // the server knows that we listen
		t.Fatal(err)
	}
	if got := r.lists(t); got != alone {
		t.Errorf("who leads does not answer, and the lists are %s, want %s", got, alone)
	}
	if len(asked) == 0 {
		t.Error("it was not asked")
	}
	if err := sub.Unsubscribe(); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- index.New(index.Options{Team: r.bt, Finish: b.FinishCreate, Send: func(team.AgentID, team.Task) error { return nil }}).Run(ctx)
	}()
	brokertest.Until(t, "the index answers", func() bool {
		_, err := index.Ask(t.Context(), r.bt, team.Query{}, 0)
		return err == nil
	})
	if got := r.lists(t); got != alone {
		t.Errorf("by the index the lists are %s, want %s", got, alone)
	}
	cancel()
	if err := brokertest.Receive(t, "the index ends", done); err != nil {
		t.Error(err)
	}
}

// What the index says is believed: the bucket is not read besides.
func TestListByIndex(t *testing.T) {
	r := newRig(t)
	r.add(t, 2)
	sub, err := r.bt.Conn.NATS().Subscribe(subject.Query("t"), func(m *nats.Msg) {
		var q struct{ Seq uint64 }
		if json.Unmarshal(m.Data, &q) == nil && q.Seq > 0 {
			_ = m.Respond([]byte(`{"tasks":[],"total":42}`))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsubscribe()                              // the server ends
	if err := r.bt.Conn.Flush(t.Context()); err != nil { // the server knows that we listen
		t.Fatal(err)
	}
	if p, err := r.Board().List(t.Context(), team.Query{}); err != nil || p.Total != 42 {
		t.Errorf("List = %+v, %v", p, err)
	}
	_, err = r.Board().List(t.Context(), team.Query{Limit: -1})
	wantCode(t, "a wrong limit", err, team.InvalidArgument)
}
