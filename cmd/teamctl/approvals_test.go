package main

import (
	"bytes"
	"strings"
	"testing"

	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
)

// A plan that waits for a person is shown by status with its text and the commands that decide on it, and is named by its
// member or the beginning of its id.
func TestPlansOfMembers(t *testing.T) {
	url := brokertest.Server(t)
	teamctl := func(args string) (stdout, stderr string, err error) {
		var out, errs bytes.Buffer
		err = newApp(&out, &errs).run(t.Context(), append(strings.Fields(args), "--server", url))
		return out.String(), errs.String(), err
	}
	if _, _, err := teamctl("teams add default"); err != nil {
		t.Fatal(err)
	}
	bt, err := brokertest.Connect(t, url).Open(t.Context(), team.DefaultTeam)
	if err != nil {
		t.Fatal(err)
	}
	b, members := board.New(bt.Bucket, board.Options{}), roster.New(bt)
	plans := approval.New(bt.Bucket, approval.Options{Tasks: b, Members: members, Post: mailbox.New(bt, mailbox.Options{Members: members})})
	ids := map[team.AgentID]string{}
	for _, name := range []team.AgentID{"joe", "ann", "eve"} {
		m := team.Member{AgentID: name, Role: "coder", State: team.Joined, Incarnation: 1, Backend: team.Pool, PlanMode: true, Approver: team.ByHuman}
		if m, err = members.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		gate, err := plans.Gate(t.Context(), m, board.NewClaimSlot(t.Context(), b, m.Holder()))
		if err != nil {
			t.Fatal(err)
		}
		a, err := gate.Submit(t.Context(), "First "+string(name)+" looks.\n"+strings.Repeat("Then it writes much.\n", 500))
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = a.ID
	}
	out, errs, _ := teamctl("status") // no leader answers
	for name, id := range ids {
		for _, want := range []string{string(name) + "@default asks you to approve its plan, ", "  First " + string(name) + " looks.", "approve: teamctl approvals approve " + id + " --server " + url + "; reject: teamctl approvals reject " + id + " --feedback TEXT", "the whole plan: teamctl approvals show " + id} {
			if !strings.Contains(out+errs, want) {
				t.Errorf("status lacks %q:\n%s%s", want, out, errs)
			}
		}
	}
	if n := strings.Count(out+errs, "Then it writes"); n == 0 || n != 3*(mostPlanLines-1) {
		t.Errorf("status shows %d lines of three plans", n)
	}
	unique := func(name team.AgentID) string {
		for n := 1; ; n++ {
			if id := ids[name][:n]; strings.Count(" "+ids["joe"]+" "+ids["ann"]+" "+ids["eve"], " "+id) == 1 {
				return id
			}
		}
	}
	for _, tt := range []struct {
		args string
		code team.Code
		says string
	}{
		{"approvals show joe", "", "First joe looks."},
		{"approvals approve bob", team.NotFound, "there is no plan or request \"bob\""},
		{"approvals approve joe", "", ids["joe"] + " of joe@default is approved"},
		{"approvals approve joe", team.NotFound, ""},
		{"approvals approve " + ids["joe"][:12], team.Conflict, "decided on before"},
		{"approvals reject " + unique("ann") + " --feedback slower", "", ids["ann"] + " of ann@default is rejected"},
		{"approvals approve eve@default", "", ids["eve"] + " of eve@default is approved"},
	} {
		out, _, err := teamctl(tt.args)
		if err != nil {
			out = team.Line(err)
		}
		if team.CodeOf(err) != tt.code || !strings.Contains(out, tt.says) {
			t.Errorf("%s: %q, %v", tt.args, out, err)
		}
	}
}
