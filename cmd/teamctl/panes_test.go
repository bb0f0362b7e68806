package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"agentteam/pkg/execenv/trust/trusttest"
	"agentteam/pkg/team"
)

// Whether a run has panes is settled by team.yaml, too. Where its output is no terminal, only tmux
// gives it some; in-process never does.
func TestTeammateModeOfSettings(t *testing.T) {
	const noTmux = "there is no tmux here"
	for _, tt := range []struct {
		mode, tmux string
		panes      bool
		told       string
	}{
		{"tmux", "/tmp/socket,1,0", true, ""}, {"tmux", "", false, noTmux},
		{"in-process", "/tmp/socket,1,0", false, ""}, {"in-process", "", false, ""},
		{"auto", "/tmp/socket,1,0", false, ""}, {"auto", "", false, ""},
	} {
		t.Run(tt.mode+" "+tt.tmux, func(t *testing.T) {
			t.Chdir(t.TempDir())
			own, err := trusttest.Own(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("XDG_CONFIG_HOME", own)
			t.Setenv("AGENTTEAM_TEAMMATE_MODE", "")
			t.Setenv("TMUX", tt.tmux)
			t.Setenv("TMUX_PANE", "%1")
			if err := os.WriteFile("team.yaml", []byte("team: shop\nteammate_mode: "+tt.mode+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			a := newApp(&out, &errs)
			a.cmd = &cobra.Command{}
			cfg, err := a.clientSettings()
			if err != nil {
				t.Fatal(err)
			}
			panes := a.panesFor(cfg, team.DefaultTeam)
			if (panes != nil) != tt.panes || (errs.Len() > 0) != (tt.told != "") || !strings.Contains(errs.String(), tt.told) {
				t.Errorf("it has panes: %v; it prints %q", panes != nil, errs.String())
			}
		})
	}
}
