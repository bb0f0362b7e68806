package teamtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client"
	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/model"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest"
	"agentteam/pkg/tool"
)

var update = flag.Bool("update", false, "write the schemas anew")

const schemas = "../../docs/schema"

// published are the records of the protocol by the names of their schemas.
var published = map[string]struct {
	record any
	what   string
}{
	"team":         {team.Team{}, "A team: the key team of its bucket."},
	"task":         {team.Task{}, "A task as it is stored: a key task.T-001 of the bucket."},
	"task-printed": {team.TaskView{}, "A task as lists and teamctl print it."},
	"member":       {team.Member{}, "A member: a key member.NAME of the bucket."},
	"call":         {broker.Call{}, "A call with an idempotency key: a key once.HASH of the bucket."},
	"delta":        {team.Delta{}, "A chunk of a text that a model is writing."},
	"plan":         {team.Approval{}, "A plan and what was decided on it: a key approval.ID of the bucket."},
	"task-numbers": {board.Sequence{}, "The number of the next task, and the tasks created last: the key seq.task of the bucket."},
	"heartbeat":    {team.Heartbeat{}, "A heartbeat, and the answer to a ping."},
	"message":      {team.Message{}, "A message to one member or to all."},
	"journal":      {journal.Record{}, "A record of a member's journal. What a kind needs is required; a record that is stored apart has stored_record in its place."},
	"turn":         {model.Reply{}, "The field turn of a journal record."},
	"event":        {team.Event{}, "An event: as it is stored, and as a reader derives it."},
	"order":        {control.Order{}, "An order to a process to become a member."},
	"assignment":   {team.Assignment{}, "The request assign to a member's process."},
	"query":        {team.Query{}, "A question for a list of tasks; what is there must hold."},
	"page":         {team.Page{}, "The answer to a query."},

	"member-printed":  {client.Agent{}, "A member as lists and teamctl print it."},
	"message-printed": {client.StoredMessage{}, "A message as lists and teamctl print it."},
	"team-printed":    {client.TeamStatus{}, "A team as teamctl status and GET /v1/teams print it."},
}

// worded are the types whose values are some words only.
var worded = []reflect.Type{
	reflect.TypeFor[team.TaskStatus](), reflect.TypeFor[team.EventType](), reflect.TypeFor[team.Backend](), reflect.TypeFor[team.Status](),
	reflect.TypeFor[team.Create](), reflect.TypeFor[team.Respawn](), reflect.TypeFor[team.Approver](), reflect.TypeFor[team.Dialect](),
	reflect.TypeFor[team.ApprovalStatus](),
}

// needs are the fields of a journal record that its kind needs.
var needs = map[journal.Kind][]string{
	journal.Start: {}, journal.Mail: {"message"}, journal.Backlog: {"backlog", "inbox_seq"}, journal.Task: {"task"}, journal.Note: {"text"},
	journal.Turn: {"turn"}, journal.Result: {"result"}, journal.Refused: {"refusal"}, journal.Compact: {"context"}, journal.Overview: {"text"}, journal.End: {},
	journal.Project: {}, journal.Stop: {},
}

// schema is made from a record's type. Further fields are allowed: those of newer versions are.
func schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	p := published[name]
	types := map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {}}
	for _, of := range worded {
		all := team.Words(of)
		values := make([]any, len(all))
		for i, w := range all {
			values[i] = w
		}
		types[of] = &jsonschema.Schema{Type: "string", Enum: values}
	}
	s, err := jsonschema.ForType(reflect.TypeOf(p.record), &jsonschema.ForOptions{TypeSchemas: types})
	if err != nil {
		t.Fatal(err)
	}
	open(s)
	describe(s, reflect.TypeOf(p.record), fieldComments(t))
	s.Schema, s.Title, s.Description = "https://json-schema.org/draft/2020-12/schema", name, p.what
	if v := s.Properties["v"]; v != nil {
		protocol := any(team.Protocol)
		v.Const = &protocol
	}
	if name == "journal" {
		s.Properties["turn"] = &jsonschema.Schema{Ref: "turn.json"}
		kinds := slices.Sorted(maps.Keys(needs))
		values := []any{}
		for _, k := range kinds {
			values = append(values, string(k))
			if len(needs[k]) > 0 {
				is, whole := any(string(k)), &jsonschema.Schema{Not: &jsonschema.Schema{Required: []string{"stored_record"}}}
				s.AllOf = append(s.AllOf, &jsonschema.Schema{
					If:   &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"kind": {Const: &is}}, AllOf: []*jsonschema.Schema{whole}},
					Then: &jsonschema.Schema{Required: needs[k]},
				})
			}
		}
		s.Properties["kind"] = &jsonschema.Schema{Type: "string", Enum: values}
	}
	return s
}

// open allows fields that are not known.
func open(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Properties != nil {
		s.AdditionalProperties = nil
	}
	open(s.Items)
	open(s.AdditionalProperties)
	for _, p := range s.Properties {
		open(p)
	}
}

// describe gives the fields of a record the comments that they have in the code.
func describe(s *jsonschema.Schema, of reflect.Type, comments map[string]string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		if of.Kind() != reflect.Pointer {
			s = cmpSchema(s.Items, s.AdditionalProperties)
		}
		of = of.Elem()
	}
	if s == nil || of.Kind() != reflect.Struct {
		return
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			describe(s, f.Type, comments)
		}
		if p := s.Properties[name]; p != nil {
			if text := comments[of.PkgPath()+"."+of.Name()+"."+f.Name]; text != "" && p.Description == "" {
				p.Description = text
			}
			describe(p, f.Type, comments)
		}
	}
}

func cmpSchema(a, b *jsonschema.Schema) *jsonschema.Schema {
	if a != nil {
		return a
	}
	return b
}

// fieldComments are the comments behind the fields of the records' packages, by package, type
// and field.
var fieldComments = func() func(*testing.T) map[string]string {
	read := sync.OnceValues(func() (map[string]string, error) {
		all := map[string]string{}
		for _, pkg := range []string{"team", "store/journal", "store/board", "model", "execenv/projectcontext", "agent/control", "store/broker", "client", "store/approval"} {
			files, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
			if err != nil {
				return nil, err
			}
			for _, name := range files {
				file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
				if err != nil {
					return nil, err
				}
				ast.Inspect(file, func(n ast.Node) bool {
					ts, ok := n.(*ast.TypeSpec)
					if !ok {
						return true
					}
					if st, ok := ts.Type.(*ast.StructType); ok {
						for _, f := range st.Fields.List {
							for _, id := range f.Names {
								all["agentteam/pkg/"+pkg+"."+ts.Name.Name+"."+id.Name] = strings.TrimSpace(f.Comment.Text())
							}
						}
					}
					return true
				})
			}
		}
		return all, nil
	})
	return func(t *testing.T) map[string]string {
		t.Helper()
		all, err := read()
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
}()

// The schemas in docs are those of the types.
func TestSchemasAreUpToDate(t *testing.T) {
	t.Parallel()
	for name := range published {
		data, err := json.Marshal(schema(t, name))
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := json.Indent(&text, data, "", "  "); err != nil {
			t.Fatal(err)
		}
		text.WriteByte('\n')
		file := filepath.Join(schemas, name+".json")
		if *update {
			if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, text.Bytes()) {
			t.Errorf("%s is not that of the type (%v; go test ./pkg/teamtest -run Schemas -update writes it)", file, err)
		}
	}
	files, err := filepath.Glob(schemas + "/*.json")
	if err != nil || len(files) != len(published) {
		t.Errorf("there are %d schemas of %d records: %v", len(files), len(published), err)
	}
}

// Every kind of record is one of the schema.
func TestEveryKindIsInTheSchema(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("../store/journal/journal.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`Kind = "(\w+)"`).FindAllStringSubmatch(string(code), -1)
	for _, m := range kinds {
		if needs[journal.Kind(m[1])] == nil {
			t.Errorf("no schema has the kind %s", m[1])
		}
	}
	if len(kinds) != len(needs) {
		t.Errorf("there are %d kinds, and %d in the schema", len(kinds), len(needs))
	}
}

// published schemas, as a reader of the docs has them.
func resolved(t *testing.T) map[string]*jsonschema.Resolved {
	t.Helper()
	read := func(name string) *jsonschema.Schema {
		data, err := os.ReadFile(filepath.Join(schemas, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		s := new(jsonschema.Schema)
		if err := json.Unmarshal(data, s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	all := map[string]*jsonschema.Resolved{}
	for name := range published {
		s := read(name)
		if name == "journal" {
			s.Properties["turn"] = read("turn") // which lies beside it
		}
		r, err := s.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = r
	}
	return all
}

// validate checks one record.
func validate(s *jsonschema.Resolved, data []byte) error {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	return s.Validate(v)
}

// idle holds nothing.
type idle struct{}

func (idle) Task() (team.Task, bool) { return team.Task{}, false }

// All that a run stores, and the beats that it sends, is as the schemas say.
func TestRealRecordsValidate(t *testing.T) {
	t.Parallel()
	all := resolved(t)
	c := teamtest.Start(t, script)
	tm := c.Team("t")
	seen := map[string]int{}
	var mu sync.Mutex
	check := func(name, where string, data []byte) {
		mu.Lock()
		defer mu.Unlock()
		seen[name]++
		if err := validate(all[name], data); err != nil {
			t.Errorf("%s is no %s: %v\n%s", where, name, err, data)
		}
	}
	nc := brokertest.Connect(t, c.URL).NATS()
	if _, err := nc.Subscribe(subject.Heartbeat("t", "*"), func(m *nats.Msg) { check("heartbeat", m.Subject, m.Data) }); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Subscribe(subject.LiveAll("t"), func(m *nats.Msg) { check("delta", m.Subject, m.Data) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	c.Leader()
	c.Teammates(2)
	goal, _, err := tm.Goals().Set(t.Context(), client.NewGoal{Text: "Build bridges", Key: "once"})
	if err != nil {
		t.Fatal(err)
	}
	if record := teamtest.Wait(t, goal); record.Status != team.TeamFinished {
		t.Fatalf("the goal is %s: %s", record.Status, record.Summary)
	}
	bt := storage(t, c, "t")
	members := roster.New(bt)
	plans := approval.New(bt.Bucket, approval.Options{Tasks: board.New(bt.Bucket, board.Options{}), Members: members, Post: mailbox.New(bt, mailbox.Options{Members: members})})
	gate, err := plans.Gate(t.Context(), team.Member{AgentID: "coder-1", Incarnation: 1, PlanMode: true}, idle{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gate.Submit(t.Context(), "first this"); err != nil {
		t.Fatal(err)
	}
	asks := plans.Permissions(team.Member{AgentID: "coder-1", Incarnation: 1}, idle{}, func(context.Context, tool.Request) (approval.Judgement, error) {
		return approval.Judgement{Answer: permission.Ask, Dir: "/w"}, nil
	})
	if err := asks.Pass(t.Context(), tool.Request{Called: "bash", Arguments: []byte(`{"command":"make"}`)}); !errors.Is(err, team.PermissionDenied) {
		t.Fatal(err)
	}
	sentAndPrinted(t, c, tm, check)
	eachStored(t, nc, func(subj string, data []byte) {
		name := recordOf(subj)
		if name == "" {
			return
		}
		check(name, subj, data)
		if name == "journal" {
			var r journal.Record
			if json.Unmarshal(data, &r) == nil && r.Kind == journal.Turn {
				check("turn", subj, r.Turn)
			}
		}
	})
	for name := range published {
		if seen[name] == 0 {
			t.Errorf("no %s was seen", name)
		}
	}

	for what, bad := range map[string]struct {
		name   string
		damage func(record map[string]any)
	}{
		"a status that there is not":        {"task", func(r map[string]any) { r["status"] = "done" }},
		"a number in words":                 {"task", func(r map[string]any) { r["epoch"] = "one" }},
		"a member without its time":         {"member", func(r map[string]any) { delete(r, "joined_at") }},
		"a kind that there is not":          {"journal", func(r map[string]any) { r["kind"] = "thought" }},
		"a record without its field":        {"journal", func(r map[string]any) { r["kind"] = "mail"; delete(r, "message") }},
		"a turn in the form of an endpoint": {"journal", func(r map[string]any) { r["kind"], r["turn"] = "turn", map[string]any{"role": "assistant"} }},
		"a message without who has sent it": {"message", func(r map[string]any) { delete(r, "from") }},
	} {
		taken, refused := 0, 0
		eachStored(t, nc, func(subj string, data []byte) {
			if recordOf(subj) != bad.name {
				return
			}
			record := map[string]any{}
			if err := json.Unmarshal(data, &record); err != nil {
				t.Fatal(err)
			}
			if bad.damage(record); all[bad.name].Validate(record) == nil {
				taken++
			}
			refused++
		})
		if taken > 0 || refused == 0 {
			t.Errorf("%s is taken in %d of %d records", what, taken, refused)
		}
	}
}

// sentAndPrinted checks the requests to processes, and what programs print of a team.
func sentAndPrinted(t *testing.T, c *teamtest.Cluster, tm *client.Team, check func(name, where string, data []byte)) {
	t.Helper()
	of := func(name string, v any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		check(name, name, data)
	}
	of("order", control.Order{Team: "t", Agent: "coder-1", Incarnation: 1})
	of("assignment", team.Assignment{Task: "T-001", By: team.Leader, Epoch: 1})
	query := team.Query{Status: []team.TaskStatus{team.Completed}, Claimable: new(bool), Limit: 1}
	of("query", query)
	page, err := tm.Board().List(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	of("page", page)
	for _, task := range teamtest.Tasks(t, tm) {
		of("task-printed", task)
	}
	members, err := tm.Members().List(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		of("member-printed", m)
	}
	mail, err := tm.Mail().Inbox(t.Context(), team.Leader)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mail {
		of("message-printed", m)
	}
	status, err := c.Client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range status.Teams {
		of("team-printed", s)
	}
}

// recordOf is the name of the schema of what is stored under a subject; "" if there is none.
func recordOf(subj string) string {
	key, inBucket := strings.CutPrefix(subj, "$KV.at-t.")
	switch kind, _, _ := strings.Cut(key, "."); {
	case inBucket && key == "seq.task":
		return "task-numbers"
	case inBucket:
		return map[string]string{"team": "team", "task": "task", "member": "member", "approval": "plan", "once": "call"}[kind]
	}
	parts := strings.Split(subj, ".")
	if len(parts) < 3 || parts[0] != "at" {
		return ""
	}
	return map[string]string{"inbox": "message", "all": "message", "evt": "event", "log": "journal"}[parts[2]]
}

// eachStored calls f with all that the team's streams hold.
func eachStored(t *testing.T, nc *nats.Conn, f func(subj string, data []byte)) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"AT_t_MSG", "AT_t_EVT", "AT_t_LOG", "KV_at-t"} {
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		state := stream.CachedInfo().State
		for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
			m, err := stream.GetMsg(t.Context(), seq)
			if err != nil {
				continue // an older copy of a key
			}
			if len(m.Data) > 0 {
				f(m.Subject, m.Data)
			}
		}
	}
}
