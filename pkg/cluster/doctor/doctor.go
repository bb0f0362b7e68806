// Package doctor checks whether agentteam can work from here: the programs, the workspace, git, the
// server, the processes on it, the model. It changes only one key of the registry that exists for
// that, and gives a hint for each fault.
//
// It also names threats against which this version does not protect, so that no user takes the
// protection for granted.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client"
	"agentteam/pkg/cluster/childproc"
	"agentteam/pkg/config"
	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/execenv/trust"
	"agentteam/pkg/model"
	"agentteam/pkg/model/probe"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// Status is the result of a check.
type Status string

// The statuses of a check.
const (
	OK   Status = "ok"
	Warn Status = "warn" // works, with a limit that users should know
	Fail Status = "fail" // does not work
)

// Check is the outcome of one check.
type Check struct {
	Name   string    `json:"name"`
	Status Status    `json:"status"`
	Detail string    `json:"detail"`         // the finding; one line
	Hint   string    `json:"hint,omitempty"` // what to do; "" if nothing
	Code   team.Code `json:"code,omitempty"` // of a failure
}

// Err returns the check's failure as an error with its code and hint; nil if it did not fail.
func (c Check) Err() error {
	if c.Status != Fail {
		return nil
	}
	err := team.Errorf(c.Code, "%s: %s", c.Name, c.Detail)
	if c.Hint != "" {
		err = err.WithHint("%s", c.Hint)
	}
	return err
}

// Err returns the first failure among checks, or nil.
func Err(checks []Check) error {
	for _, c := range checks {
		if err := c.Err(); err != nil {
			return err
		}
	}
	return nil
}

// modelWait is how long the model endpoint may take to answer.
const modelWait = 10 * time.Second

// Options select optional checks; the zero value: none.
type Options struct {
	// ProbeWindow sends the model a prompt that fills the window of the settings, at least 6,000
	// tokens, to check whether its endpoint cuts it, also if that may cost money.
	ProbeWindow bool

	Waits []trust.Waiting // keys of the folder's files that wait for a person's trust
}

// Run checks what a process with these settings could do, on this machine and on its server. It
// blocks for a few seconds, with a slow model on this machine for up to two minutes, or until ctx
// ends. The checks are always the same, in the same order; a check that depends on a failed one is
// left out.
func Run(ctx context.Context, cfg config.Config, o Options) []Check {
	checks := []Check{programs(), shell(), inWorkspace(cfg.Workspace)}
	checks = append(checks, gitChecks(ctx, cfg)...)
	checks = append(checks, instructions(cfg), trusted(cfg, o.Waits))
	c, connected := server(ctx, cfg)
	checks = append(checks, connected...)
	var s client.Status
	if c != nil {
		defer c.Close()
		var err error
		s, err = c.Status(ctx)
		checks = append(checks, storage(ctx, c, s), leaders(s, err), api(s), standbys(s), aliases(s), records(s), mail(ctx, c, s), lost(s))
	}
	checks = append(checks, modelCheck(ctx, cfg, s))
	if checks[len(checks)-1].Status != Fail && cfg.CheckModel() == nil {
		checks = append(checks, toolsCheck(ctx, cfg), windowCheck(ctx, cfg, o.ProbeWindow))
	}
	return append(checks,
		confinement(ctx, cfg, s),
		Check{Name: "identity", Status: Warn, Detail: "sender identity is by agentteam's code, not by NATS credentials",
			Hint: "let only agentteam's processes and people whom you trust reach the NATS server"},
	)
}

func failed(name string, err error) Check {
	code := team.CodeOf(err)
	if code == "" {
		code = team.InvalidState
	}
	return Check{Name: name, Status: Fail, Detail: err.Error(), Hint: team.HintOf(err), Code: code}
}

// trusted lists the parts of a repository's files that are not in force.
func trusted(cfg config.Config, waits []trust.Waiting) Check {
	c := Check{Name: "trust", Status: OK, Detail: "no key of this folder's files waits for trust"}
	var files, how []string
	for _, w := range waits {
		c.Status = Warn
		files, how = append(files, w.File+": "+strings.Join(w.Names(), ", ")), append(how, w.Command())
	}
	if err := cfg.Decided(); err != nil {
		return failed(c.Name, err)
	}
	if len(waits) > 0 {
		c.Detail, c.Hint = strings.Join(files, "; ")+" not in force", "look what they set, then: "+strings.Join(how, "; ")
	}
	return c
}

// programs are only needed where a cluster is started, so their absence alone is not a failure.
func programs() Check {
	c := Check{Name: "programs", Status: OK}
	for _, name := range []string{"leader", "teammate"} {
		path, err := childproc.FindBinary(name)
		if err != nil {
			return Check{Name: "programs", Status: Warn, Detail: err.Error(), Hint: "teamctl up, run and demo need it here; " + team.HintOf(err)}
		}
		if c.Detail != "" {
			c.Detail += ", "
		}
		c.Detail += path
	}
	return c
}

func shell() Check {
	path, err := exec.LookPath("bash")
	if err != nil {
		return Check{Name: "bash", Status: Warn, Detail: "there is no bash on this machine", Hint: "install bash: agents that run here cannot use their bash tool"}
	}
	return Check{Name: "bash", Status: OK, Detail: path}
}

// inWorkspace writes a file, since permission bits do not show read-only mounts and full disks.
func inWorkspace(dir string) Check {
	dir, err := filepath.Abs(dir) // "" is the current one
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".agentteam-doctor-*"); err == nil {
			_, err = f.WriteString("may this be written?\n")
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		return failed("workspace", team.Errorf(team.InvalidState, "%w", err).WithHint("make the folder writable, or name another with AGENTTEAM_WORKSPACE"))
	}
	return Check{Name: "workspace", Status: OK, Detail: dir + " can be written"}
}

// server returns a client, or nil if no server answers.
func server(ctx context.Context, cfg config.Config) (*client.Client, []Check) {
	c, err := client.Connect(ctx, client.Options{URL: cfg.Server, Replicas: cfg.Replicas})
	switch {
	case err == nil:
		return c, []Check{{Name: "server", Status: OK, Detail: c.Server() + " answers"}, {Name: "jetstream", Status: OK, Detail: "JetStream is on"}}
	case errors.Is(err, broker.ErrNoJetStream):
		return nil, []Check{{Name: "server", Status: OK, Detail: "NATS answers"}, failed("jetstream", err)}
	}
	if startsOwn(cfg) {
		return nil, []Check{{Name: "server", Status: OK, Detail: "no cluster runs here; `teamctl run` and `teamctl up` start one with its own NATS server"}}
	}
	return nil, []Check{failed("server", err)}
}

// startsOwn reports whether a command that needs a cluster would start one here: no server was
// named, and a cluster file of this folder is of a cluster that is gone.
func startsOwn(cfg config.Config) bool {
	if _, err := childproc.FindBinary("leader"); err != nil {
		return false
	}
	if file := cfg.ClusterFile(); file != "" {
		cl, err := config.ReadCluster(file)
		return err == nil && !cl.Alive()
	}
	return !cfg.ServerKnown()
}

// confinement checks the sandbox for commands, here and where the processes are.
func confinement(ctx context.Context, cfg config.Config, s client.Status) Check {
	c := Check{Name: "sandbox", Status: OK}
	found, err := sandbox.Find(ctx, cfg.Sandbox)
	switch {
	case err != nil:
		return failed("sandbox", err)
	case found.Level() == team.Unconfined:
		return Check{Name: "sandbox", Status: Warn, Detail: "none: commands are not confined",
			Hint: "they may do whatever the user of their process may, and reach any network: set `sandbox: auto`, or run agents as a user, or in a container, that may do little"}
	}
	c.Detail = fmt.Sprintf("commands here run in %s, each with at most %s, %d minutes", found, cfg.Limits, int(workspace.MaxTime.Minutes()))
	if found.Level() == team.Confined {
		c.Detail += ": without any network; in a repository that members share they make and remove nothing directly in its folder, so that .git is kept"
		c.Hint = "install bubblewrap for the stronger level"
	}
	for _, p := range slices.Concat(s.Leaders, s.Standbys, s.Members) {
		switch {
		case strings.HasPrefix(p.Sandbox, control.NoSandbox) && p.Kind == "leader": // its image may have no shell
			c.Status, c.Hint = Warn, fmt.Sprintf("the leader %s on %s can run no command itself: %s", p.PID, p.Host, p.Sandbox)
		case strings.HasPrefix(p.Sandbox, control.NoSandbox):
			return Check{Name: "sandbox", Status: Fail, Code: team.Unavailable, Detail: fmt.Sprintf("the %s %s on %s: %s", p.Kind, p.PID, p.Host, p.Sandbox),
				Hint: "install bubblewrap there, or set `sandbox: none` there to run commands with all rights of the process"}
		case p.Sandbox == string(team.Unconfined):
			c.Status, c.Hint = Warn, fmt.Sprintf("the commands of the %s %s on %s are not confined: start it with `sandbox: auto`", p.Kind, p.PID, p.Host)
		}
	}
	return c
}

// storage reports whether the server stores a write, and those of the members, each of which writes
// to its own streams.
func storage(ctx context.Context, c *client.Client, s client.Status) Check {
	if err := c.Storage(ctx); err != nil {
		return failed("storage", err)
	}
	if s.Storage != "" {
		return failed("storage", team.Errorf(team.Unavailable, "%s", s.Storage))
	}
	return Check{Name: "storage", Status: OK, Detail: "the server stores what it is told"}
}

// records lists the unreadable records of the teams that hinder a member.
func records(s client.Status) Check {
	var bad []string
	for _, t := range s.Teams {
		for _, q := range t.Damaged {
			bad = append(bad, fmt.Sprintf("%s of team %s", q.Key, t.ID))
		}
		for _, p := range t.Parked {
			if p.State == team.WaitingRepair {
				bad = append(bad, fmt.Sprintf("the journal of %s", p.AgentID.At(t.ID)))
			}
		}
	}
	if len(bad) == 0 {
		return Check{Name: "records", Status: OK, Detail: "what the teams need can be read"}
	}
	return Check{Name: "records", Status: Warn, Detail: "damaged: " + strings.Join(bad, ", "), Hint: team.RepairHint + "; --team names the team"}
}

// mail lists the members whose read position is beyond the end of their team's mail.
func mail(ctx context.Context, c *client.Client, s client.Status) Check {
	var ahead []string
	for _, status := range s.Teams {
		t, err := c.Open(ctx, status.ID)
		if err != nil {
			continue // another check names its fault
		}
		inboxes, err := t.Inboxes(ctx)
		if err != nil {
			return failed("mail", err)
		}
		for _, d := range inboxes {
			ahead = append(ahead, fmt.Sprintf("%s of team %s: %s", d.Key, status.ID, d.Error))
		}
	}
	if len(ahead) == 0 {
		return Check{Name: "mail", Status: OK, Detail: "the mail of each team holds what its members have read"}
	}
	return Check{Name: "mail", Status: Warn, Detail: strings.Join(ahead, "; "),
		Hint: "teamctl repair --all has them read on (--team names the team); a member also does when its process starts, and with the next message"}
}

// lost lists the members that no process can play, such as a leader whose folder is gone.
func lost(s client.Status) Check {
	var who []string
	for _, t := range s.Teams {
		if t.Status != team.Active {
			continue
		}
		for _, m := range t.Lost {
			who = append(who, fmt.Sprintf("%s is lost: %s", m.AgentID.At(t.ID), m.Why))
		}
	}
	if len(who) == 0 {
		return Check{Name: "teams", Status: OK, Detail: "no member is lost for a known reason"}
	}
	return Check{Name: "teams", Status: Warn, Detail: strings.Join(who, "; "),
		Hint: "they are brought back as soon as that is over; a team whose folder is gone takes another: teamctl run --resume --workspace DIR"}
}

func leaders(s client.Status, err error) Check {
	if err != nil {
		return failed("leaders", err)
	}
	return Check{Name: "leaders", Status: OK, Detail: fmt.Sprintf("%d running", len(s.Leaders))}
}

// api lists the addresses at which the leaders serve the HTTP API. They are not contacted, since
// some may be reachable from elsewhere only.
func api(s client.Status) Check {
	var served []string
	for _, l := range s.Leaders {
		if l.API != "" {
			served = append(served, l.API)
		}
	}
	if served == nil {
		return Check{Name: "api", Status: OK, Detail: "no leader process serves the HTTP API", Hint: "programs and pages need it: start a leader process with --api"}
	}
	return Check{Name: "api", Status: OK, Detail: "the HTTP API is served at " + strings.Join(served, ", ")}
}

func standbys(s client.Status) Check {
	c := Check{Name: "standbys", Status: OK, Detail: fmt.Sprintf("%d waiting", len(s.Standbys))}
	if len(s.Standbys) == 0 {
		c.Status, c.Hint = Warn, "a spawn needs one, unless the leader may start processes (under teamctl up and run): start teammate processes"
	}
	return c
}

// modelCheck asks the endpoint if its settings are here. The leaders' reports count as well: they
// run elsewhere, with other settings.
func modelCheck(ctx context.Context, cfg config.Config, s client.Status) Check {
	const name = "model"
	missing := cfg.CheckModel()
	if len(s.Leaders) > 0 && s.Model == control.NoModel {
		if missing != nil {
			return failed(name, missing)
		}
		return failed(name, team.Errorf(team.InvalidArgument, "no model is configured where the leader processes run, though it is here").
			WithHint("start them, and the teammates, with OPENAI_MODEL and OPENAI_API_KEY or OPENAI_BASE_URL set"))
	}
	if missing != nil {
		if len(s.Leaders) > 0 {
			return Check{Name: name, Status: OK, Detail: fmt.Sprintf("the leaders use %s; whether it answers cannot be asked without its settings", s.Model)}
		}
		return failed(name, missing)
	}
	c := endpoints(ctx, cfg)
	if n := without(s.Standbys) + without(s.Members); n > 0 && c.Status != Fail {
		c.Status, c.Detail = Warn, fmt.Sprintf("%s, but %d teammate processes have no model", c.Detail, n)
		c.Hint = "start them with OPENAI_MODEL and OPENAI_API_KEY or OPENAI_BASE_URL set, or with `models:` in team.yaml"
	}
	return c
}

// endpoints asks the endpoint of each configured model. That of the default must answer; faults of
// the others are warnings.
func endpoints(ctx context.Context, cfg config.Config) Check {
	routes := cfg.Routes()
	errs := make([]error, len(routes.Aliases))
	var wg sync.WaitGroup
	for i, a := range routes.Aliases {
		wg.Go(func() {
			a.Options.FirstByte = modelWait
			m, err := model.New(a.Options)
			if err == nil {
				err = m.Check(ctx)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	var answer []string
	wrong := cfg.Lacking()
	for i, a := range routes.Aliases {
		err := errs[i]
		name := a.Options.Model
		if len(cfg.Models) > 0 { // else there is one, without a name of the user's
			name = a.Name + " (" + name + ")"
		}
		if err != nil && len(cfg.Models) > 0 {
			err = team.Errorf(cmp.Or(team.CodeOf(err), team.InvalidState), "the model alias %s: %w", a.Name, err).WithHint("%s", team.HintOf(err))
		}
		switch {
		case err == nil:
			answer = append(answer, name)
		case a.Name == routes.Default:
			return failed("model", err)
		default:
			wrong = append(wrong, err)
		}
	}
	c := Check{Name: "model", Status: OK, Detail: strings.Join(answer, ", ") + " is configured and its endpoint answers"}
	if len(answer) > 1 {
		c.Detail = strings.Join(answer, ", ") + " are configured and their endpoints answer"
	}
	for _, err := range wrong {
		c.Status, c.Detail = Warn, c.Detail+"; "+err.Error()
		c.Hint = cmp.Or(c.Hint, team.HintOf(err))
	}
	return c
}

// toolsCheck has the default model call a tool, which agents do all the time.
func toolsCheck(ctx context.Context, cfg config.Config) Check {
	const name = "tools"
	o := defaultOf(cfg.Routes())
	o.Attempts = 1
	ctx, cancel := context.WithTimeout(ctx, trialWait(ctx))
	defer cancel()
	m, err := model.New(o)
	if err != nil {
		return failed(name, err)
	}
	calls, err := probe.CallsTools(ctx, m, "")
	switch {
	case err != nil && ctx.Err() != nil:
		return Check{Name: name, Status: Warn, Detail: o.Model + " has not answered in time, so whether it can call tools is not known", Hint: "give it more time: teamctl doctor --timeout 5m"}
	case err != nil:
		return failed(name, err)
	case !calls:
		return failed(name, team.Errorf(team.InvalidState, "%s answers in text only: asked for a call of a tool, it made none", o.Model).
			WithHint("use a model that can call tools, or see how its endpoint is told to let it"))
	}
	return Check{Name: name, Status: OK, Detail: o.Model + " calls tools"}
}

// aliases returns the models of the processes, by name.
func aliases(s client.Status) Check {
	var names []string
	have := map[string]int{}
	for _, p := range slices.Concat(s.Leaders, s.Standbys, s.Members) {
		for _, name := range p.Aliases {
			if have[name]++; have[name] == 1 {
				names = append(names, name)
			}
		}
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, have[name])
	}
	detail := "no process names a model"
	if names != nil {
		detail = strings.Join(names, ", ") + ": model aliases, each with the number of processes that have it"
	}
	return Check{Name: "aliases", Status: OK, Detail: detail}
}

// without counts the processes that have no model.
func without(all []control.Process) (n int) {
	for _, p := range all {
		if p.Model == control.NoModel {
			n++
		}
	}
	return n
}
