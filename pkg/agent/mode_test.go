package agent

import (
	"context"
	"testing"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// How the agent works may be changed while it does: the next request has the other system message and the
// other tools, also after a compaction and in another process.
func TestModeIsTakenWithTheNextTurn(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		system := "You lead."
		r.opts.Mode = func() (string, engine.Tools) {
			if system == "You only lead." {
				return system, noTools{r.opts.Tools}
			}
			return system, r.opts.Tools
		}
		compacts := make(chan struct{}, 1)
		r.opts.Input.Compacts = compacts
		r.tools["look"] = func(context.Context, tool.Call) tool.Result {
			system = "You only lead."
			return tool.Result{Content: "seen"}
		}
		r.says("!look", "done", "summary", "again", "as ever", "done")
		want := func(system string, tools bool) {
			t.Helper()
			last := r.asked[len(r.asked)-1]
			if got := last.Messages[0].Content; got != system || len(last.Tools) > 0 != tools {
				t.Errorf("the model is asked with %q and %d tools", got, len(last.Tools))
			}
		}
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		want("You only lead.", false)
		compacts <- struct{}{}
		r.settle()
		want("You only lead.", false) // that asked for a summary
		r.post(2, team.UserAgent, team.MsgUser, "go on")
		want("You only lead.", false)
		r.stop()
		r.opts.Member.Incarnation = 2
		r.start()
		r.post(3, team.UserAgent, team.MsgUser, "go on")
		want("You only lead.", false)
		system = "You lead."
		r.post(4, team.UserAgent, team.MsgUser, "go on")
		want("You lead.", true)
	})
}

// noTools are tools of which the model is not told.
type noTools struct{ engine.Tools }

func (noTools) Specs() []tool.Spec { return nil }
