package journal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
)

// largeTurn is a turn of 3 MB.
func largeTurn() journal.Record {
	turn, _ := json.Marshal(map[string]string{"reasoning": strings.Repeat("思考 \"so\"\n", 200_000)})
	return journal.Record{Kind: journal.Turn, RunID: "run", Turn: turn, TaskID: "T-001"}
}

// raw is the last message of the log stream as it is stored.
func raw(t *testing.T, bt *broker.Storage) []byte {
	t.Helper()
	m, err := bt.Logs.Last(t.Context(), subject.Log("t", "coder-1"))
	if err != nil {
		t.Fatal(err)
	}
	return m.Data
}

// objects is the stream in which the team's object store lies.
func objects(t *testing.T, bt *broker.Storage) (jetstream.JetStream, string) {
	t.Helper()
	js, err := jetstream.New(bt.Conn.NATS())
	if err != nil {
		t.Fatal(err)
	}
	return js, "OBJ_" + subject.Files("t")
}

func equal(t *testing.T, got, want journal.Record) {
	t.Helper()
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(want)
	if string(g) != string(w) || got.Seq != want.Seq {
		t.Errorf("record %d of %d bytes, want %d of %d:\n%.200s\n%.200s", got.Seq, len(g), want.Seq, len(w), g, w)
	}
}

func TestOversize(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j, _ := open(t, bt, 1)
	turn, err := j.Append(t.Context(), largeTurn())
	if err != nil {
		t.Fatal(err)
	}
	if stub := raw(t, bt); len(stub) > 1000 || !strings.Contains(string(stub), `"stored_record":"stored:`) ||
		!strings.Contains(string(stub), `"id":"`+turn.ID) || !strings.Contains(string(stub), `"kind":"turn"`) ||
		!strings.Contains(string(stub), `"run_id":"run"`) {
		t.Errorf("in its place stands %.1000s", stub)
	}
	after := note(t, j, "after")

	_, records := open(t, bt, 2)
	if len(records) != 4 {
		t.Fatalf("the successor read %d records", len(records))
	}
	equal(t, records[1], turn)
	equal(t, records[2], after)
	var each []journal.Record
	if err := journal.Each(t.Context(), bt, 1, func(r journal.Record) error { each = append(each, r); return nil }); err != nil || len(each) != 4 {
		t.Fatalf("Each gave %d records: %v", len(each), err)
	}
	equal(t, each[1], turn)
}

// What fits is not stored elsewhere.
func TestFits(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j, _ := open(t, bt, 1)
	note(t, j, strings.Repeat("x", 767<<10))
	if data := raw(t, bt); len(data) < 767<<10 {
		t.Errorf("a record that fits into a message became %.200s", data)
	}
	note(t, j, strings.Repeat("x", 768<<10))
	if data := raw(t, bt); len(data) > 1000 {
		t.Errorf("a record of 768 KiB became a message of %d bytes", len(data))
	}
}

func TestOversizeRefused(t *testing.T) {
	bt := brokertest.Team(t, "t")
	j, _ := open(t, bt, 1)
	js, store := objects(t, bt)
	if err := js.DeleteStream(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(t.Context(), largeTurn()); team.CodeOf(err) != team.Unavailable {
		t.Errorf("without an object store: %v, want unavailable", err)
	}
	note(t, j, "after")
	if got := show(inStream(t, bt)); got != "1:start, 1:note after" {
		t.Errorf("the journal holds %q", got)
	}
}

func TestOversizeUnreadable(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, bt *broker.Storage, ref string){
		"its object is gone": func(t *testing.T, bt *broker.Storage, ref string) {
			js, _ := objects(t, bt)
			s, err := js.ObjectStore(t.Context(), subject.Files("t"))
			if err == nil {
				err = s.Delete(t.Context(), strings.Replace(ref, ":", "/", 1))
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"its object is another record's": func(t *testing.T, bt *broker.Storage, ref string) {
			other, err := blob.In(bt.Files).Put(t.Context(), `{"v":2,"id":"other","kind":"note","incarnation":1,"text":"other"}`)
			if err != nil {
				t.Fatal(err)
			}
			stub := strings.Replace(string(raw(t, bt)), ref, other, 1)
			last, err := bt.Logs.LastSeq(t.Context())
			if err == nil {
				_, err = bt.Logs.Append(t.Context(), subject.Log("t", "coder-1"), []byte(stub), last)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bt := brokertest.Team(t, "t")
			j, _ := open(t, bt, 1)
			if _, err := j.Append(t.Context(), largeTurn()); err != nil {
				t.Fatal(err)
			}
			var stub journal.Record
			if err := json.Unmarshal(raw(t, bt), &stub); err != nil {
				t.Fatal(err)
			}
			damage(t, bt, stub.StoredRecord)
			if err := json.Unmarshal(raw(t, bt), &stub); err != nil {
				t.Fatal(err)
			}
			_, _, err := journal.Open(t.Context(), bt, "coder-1", 2, journal.Options{})
			if team.CodeOf(err) != team.InvalidState || !strings.Contains(err.Error(), stub.StoredRecord) {
				t.Errorf("open: %v, want invalid_state that names %s", err, stub.StoredRecord)
			}
			n := 0
			if err := journal.Each(t.Context(), bt, 1, func(journal.Record) error { n++; return nil }); err != nil || n == 0 {
				t.Errorf("Each gave %d records: %v", n, err)
			}
		})
	}
}
