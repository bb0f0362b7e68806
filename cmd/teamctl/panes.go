package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

func teammateModeFlag(cmd *cobra.Command) {
	modes := config.PanesAuto.Values()
	cmd.Flags().Var(choice[config.TeammateMode]{new(config.PanesAuto), "teammate-mode", modes}, "teammate-mode", "auto, in-process or tmux: in tmux the window is split, and each teammate also has a pane of its own; auto does so inside tmux")
	completeFlags(cmd, map[string]cobra.CompletionFunc{"teammate-mode": fixed(modes...)})
}

// panes shows each teammate in a tmux pane, which runs teamctl attach --agent. The stream still shows
// everything: a pane may be closed, and none is missed.
type panes struct {
	app  *app
	env  []string
	args []string // of attach, but for the member
	open map[team.AgentID]string
	was  string // the layout of the window before the first one
	off  bool   // tmux refused one, and that was said
}

// panesFor returns a run's panes; nil for none.
func (a *app) panesFor(cfg config.Config, id team.TeamID) *panes {
	inTmux := os.Getenv("TMUX") != "" && os.Getenv("TMUX_PANE") != ""
	switch {
	case cfg.TeammateMode == config.PanesAlways && !inTmux:
		a.notice("there is no tmux here; teammates are shown in one stream (start tmux, and teamctl in it)")
		return nil
	case cfg.TeammateMode != config.PanesAlways && !(cfg.TeammateMode == config.PanesAuto && inTmux && a.forPeople() && live(a.out)):
		return nil
	}
	p := &panes{app: a, open: map[team.AgentID]string{}, args: []string{"attach", "--team", string(id), "--agent"}}
	if cfg.ClusterFile() == "" {
		if u, err := url.Parse(cfg.Server); err != nil || u.User != nil {
			a.notice("the address of the NATS server has a password, which panes are not given; teammates are shown in one stream")
			return nil
		}
		p.env = []string{"-e", "AGENTTEAM_SERVER=" + cfg.Server}
	}
	return p
}

// entry opens and closes panes as members join and leave.
func (p *panes) entry(e client.Entry) {
	b := e.Event.Event
	var m team.Member
	if b.Type != team.MemberJoined && b.Type != team.MemberStopped || json.Unmarshal(b.Value, &m) != nil {
		return
	}
	pane, isOpen := p.open[m.AgentID]
	switch {
	case b.Type == team.MemberStopped && isOpen:
		delete(p.open, m.AgentID)
		_, _ = tmux("kill-pane", "-t", pane) // or its reader has closed it
	case b.Type == team.MemberJoined && !isOpen && !p.off && m.AgentID != team.Leader && m.Backend != team.Person:
		pane, err := p.split(m.AgentID)
		if err != nil {
			p.off = true
			p.app.notice("no more panes: " + team.OneLine(err.Error()))
			return
		}
		p.open[m.AgentID] = pane
	}
}

func (p *panes) split(a team.AgentID) (pane string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	here := os.Getenv("TMUX_PANE")
	if p.was == "" {
		p.was, _ = tmux("display-message", "-p", "-t", here, "#{window_layout}")
	}
	args := slices.Concat([]string{"split-window", "-d", "-P", "-F", "#{pane_id}", "-t", here}, p.env, []string{"--", self}, p.args, []string{string(a)})
	if pane, err = tmux(args...); err == nil {
		_, _ = tmux("select-layout", "-t", here, "tiled") // else the next has less room
	}
	return pane, err
}

// close closes the remaining panes, and restores the window's layout; tmux refuses that if the window has
// other panes by now. On nil panes it does nothing.
func (p *panes) close() {
	if p == nil {
		return
	}
	for _, pane := range p.open {
		_, _ = tmux("kill-pane", "-t", pane)
	}
	if p.was != "" {
		_, _ = tmux("select-layout", "-t", os.Getenv("TMUX_PANE"), p.was)
	}
}

// tmuxTime limits one call of tmux, which answers in milliseconds.
const tmuxTime = 5 * time.Second

func tmux(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tmuxTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, "tmux", args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		err = errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}
