package workspace_test

import (
	"reflect"
	"testing"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/workspace"
)

// In a folder that members share, the account of a write says how to take it back.
func TestChangesAreKept(t *testing.T) {
	texts := blob.In(brokertest.Team(t, "t").Files)
	for _, shared := range []bool{true, false} {
		p := open(t, workspace.Options{Keep: texts.Put, Stored: texts.Open, Shared: shared})
		for _, tt := range []struct {
			call, arguments, before, after string
			made                           bool
		}{
			{"write_file", `{"path":"a/b.txt","content":"one\ntwo\n"}`, "", "one\ntwo\n", true},
			{"edit_file", `{"path":"a/b.txt","old_string":"two","new_string":"three"}`, "one\ntwo\n", "one\nthree\n", false},
			{"write_file", `{"path":"a/b.txt","content":""}`, "one\nthree\n", "", false},
			{"write_file", `{"path":"a/b.txt","content":"x"}`, "", "x", false},
		} {
			r := p.set.Run(t.Context(), tool.Call{ID: "1", Name: tt.call, Arguments: tt.arguments})
			if r.IsError {
				t.Fatal(r.Content)
			}
			var want *team.Change
			if shared {
				want = &team.Change{Path: "a/b.txt", New: tt.made, After: team.DigestOf(tt.after)}
				if !tt.made {
					var err error
					if want.Before, err = texts.Put(t.Context(), tt.before); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !reflect.DeepEqual(r.Account.Change, want) {
				t.Errorf("%s in a shared folder (%v): %+v, want %+v", tt.call, shared, r.Account.Change, want)
			}
		}
		if r := p.set.Run(t.Context(), tool.Call{ID: "1", Name: "edit_file", Arguments: `{"path":"a/b.txt","old_string":"nothing","new_string":"y"}`}); r.Account.Change != nil {
			t.Errorf("an edit that failed has the change %+v", r.Account.Change)
		}
	}
}
