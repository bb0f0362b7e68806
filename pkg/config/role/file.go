package role

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/execenv/trust"
	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// maxFile bounds a role file, in bytes.
const maxFile = 1 << 20

// frontMatter is the head of a role file.
type frontMatter struct {
	Name        string         `yaml:"name" harmless:"any"`
	Description string         `yaml:"description" harmless:"any"`
	Tools       names          `yaml:"tools" harmless:"any"` // Roles.take lets them only narrow a role that is there
	Disallowed  names          `yaml:"disallowedTools" harmless:"any"`
	Model       string         `yaml:"model" harmless:"inherit"`
	MaxTurns    int            `yaml:"max_turns" minimum:"0" harmless:"any"` // the same
	StillTurns  int            `yaml:"turns_without_progress" minimum:"1"`
	Effort      team.Effort    `yaml:"effort"`
	PlanMode    bool           `yaml:"plan_mode" harmless:"true"`
	Approver    team.Approver  `yaml:"approver" harmless:"human"`
	Dialect     team.Dialect   `yaml:"dialect"`
	Color       team.RoleColor `yaml:"color" harmless:"any"`
	Most        int            `yaml:"max_instances" minimum:"0" harmless:"any"` // the same
	AutoClaim   *bool          `yaml:"auto_claim" harmless:"false"`
	IdleTimeout time.Duration  `yaml:"idle_timeout" minimum:"1s" harmless:"any"` // the same
	Background  bool           `yaml:"background"`
	Skills      names          `yaml:"skills" harmless:"any"`
	Servers     any            `yaml:"mcpServers"`
	TheirTurns  int            `yaml:"maxTurns" minimum:"0" harmless:"any"`            // as other programs write it
	TheirMode   theirMode      `yaml:"permissionMode" harmless:"plan|dontAsk|default"` // the same
	Policy      trust.Form     `yaml:",inline"`
}

// names is a YAML list or, as other programs write it, one string with commas. It is nil if it is missing.
type names []string

func (n *names) UnmarshalText(text []byte) error {
	*n = split(string(text))
	return nil
}

// split divides a text at its commas, except those in parentheses.
func split(text string) names {
	list, depth, from := names{}, 0, 0
	add := func(to int) {
		if name := unquote(text[from:to]); name != "" {
			list = append(list, name)
		}
		from = to + 1
	}
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth <= 0:
			add(i)
		}
	}
	add(len(text))
	return list
}

// each returns n with entries divided that are lists themselves.
func (n names) each() (list []string) {
	for _, entry := range n {
		list = append(list, split(entry)...)
	}
	return list
}

// theirMode is a mode as other programs write it.
type theirMode string

// dontAsk refuses calls that would be asked for.
const dontAsk theirMode = "dontAsk"

func (theirMode) Values() []string { return append(trust.Mode("").Values(), string(dontAsk)) }

// servers returns the names of the servers in a role file, with or without a configuration, which may contain secrets
// and is dropped.
func servers(v any) (list []string) {
	switch v := v.(type) {
	case string:
		return split(v).each()
	case []any:
		for _, entry := range v {
			list = append(list, servers(entry)...)
		}
	case map[string]any:
		return slices.Sorted(maps.Keys(v))
	}
	return list
}

// Notice is a statement of a role file that has no effect, or perhaps not the intended one.
type Notice struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"message"`
	Out    bool   `json:"left_out,omitempty"` // the file gives no role

	mild bool // nothing is wrong with the file
}

// Place returns its place, as file:line:column.
func (n Notice) Place() string { return fmt.Sprintf("%s:%d:%d", n.File, n.Line, n.Column) }

// Message returns the text, with the consequence for the file.
func (n Notice) Message() string {
	if n.Out {
		return n.Text + "; the file is left out"
	}
	return n.Text
}

func (n Notice) String() string { return n.Place() + ": " + n.Message() }

// noticeOf returns the notice of an error about a file, with its place if that is known.
func noticeOf(file string, err error) Notice {
	n := Notice{File: file, Line: 1, Column: 1, Text: strings.TrimPrefix(err.Error(), file+": ")}
	if p := strictyaml.PlaceOf(err); p.File == file {
		n.Line, n.Column, n.Text = p.Line, p.Column, p.Err.Error()
	}
	if hint := team.HintOf(err); hint != "" {
		n.Text += " (" + hint + ")"
	}
	return n
}

// parsed is a role file.
type parsed struct {
	team.Role
	root    strictyaml.Node
	notices []Notice
	tools   []Notice // the names of tools in its lists, with their places
}

// waits receives the keys of a role file that do not count before a person has trusted the file; nil: all count.
type waits func(path, value string)

// parse parses a role file of ours. The file's name is the default of the role's name. Unknown keys are left out with a
// notice. Errors: InvalidArgument, with the file and each invalid value.
func parse(file string, src []byte, w waits) (parsed, error) {
	p := parsed{}
	head, body, err := divide(file, src)
	if err != nil {
		return p, err
	}
	var f frontMatter
	format := strictyaml.Format{File: file, Kind: "role file", Skip: 1, All: true, Waits: w, Unknown: func(err error) { p.notices = append(p.notices, noticeOf(file, err)) }}
	root, err := format.Decode(head, &f)
	if err != nil {
		return p, err
	}
	return p, p.fill(f, root, nameOf(file), file, body)
}

// fill sets the role from f and the instructions behind it; name is the default of its name.
func (p *parsed) fill(f frontMatter, root strictyaml.Node, name, file string, body []byte) error {
	f.Policy.Mode = cmp.Or(f.Policy.Mode, f.mode())
	policy, planMode := f.Policy.Policy()
	if f.TheirMode == dontAsk {
		policy.PermissionAsk = cmp.Or(policy.PermissionAsk, team.AskDeny)
	}
	r := team.Role{Name: cmp.Or(f.Name, name), Description: f.Description, Tools: f.Tools.each(), Model: f.model(),
		MaxTurns: cmp.Or(f.MaxTurns, f.TheirTurns), StillTurns: f.StillTurns, Effort: f.Effort, Dialect: f.Dialect, PlanMode: f.PlanMode || planMode, Approver: f.Approver, Policy: policy,
		Color: f.Color, MaxInstances: f.Most, AutoClaim: f.AutoClaim, Background: f.Background,
		Skills: f.Skills.each(), MCPServers: servers(f.Servers), Instructions: strings.TrimSpace(string(body))}.IdleFor(f.IdleTimeout)
	if f.Tools != nil && len(r.Tools) == 0 { // a list of none is none, not all
		r = r.Toolless()
	}
	take(f.Disallowed.each(), &r)
	p.place(root, r)
	p.remark(root, f, r)
	err := r.Validate()
	if err == nil {
		_, _, err = permission.Parse(r.Policy.Permissions)
	}
	if p.Role, p.root = r, root; err != nil {
		return root.At(err)
	}
	return nil
}

// mode returns f's mode under the other program's key, "" if it is not one of ours.
func (f frontMatter) mode() trust.Mode {
	if f.TheirMode == dontAsk {
		return ""
	}
	return trust.Mode(f.TheirMode)
}

// model returns the alias that f names; "" if it names none, or a name that no alias can have.
func (f frontMatter) model() string {
	if name := strings.TrimSpace(f.Model); team.IsAlias(name) {
		return name
	}
	return ""
}

// at returns err with the place of p's name.
func (p parsed) at(err error) error {
	if p.root.Has("name") {
		return p.root.At(err, "name")
	}
	return p.root.At(err)
}

// take removes the disallowed tools from r. A tool that is disallowed for some arguments only becomes a deny rule.
func take(disallowed []string, r *team.Role) {
	for _, name := range disallowed {
		if strings.HasSuffix(name, ")") && strings.Contains(name, "(") {
			r.Policy.Permissions.Deny = append(r.Policy.Permissions.Deny, name)
			continue
		}
		r.DisallowedTools = append(r.DisallowedTools, name)
	}
}

// place records where r names tools.
func (p *parsed) place(root strictyaml.Node, r team.Role) {
	for key, list := range map[string][]string{"tools": r.Tools, "disallowedTools": r.DisallowedTools} {
		for i, name := range list {
			p.tools = append(p.tools, noticeOf(originOf(root), root.At(errors.New(name), key, i)))
		}
	}
}

// remark adds notices about a well-formed file.
func (p *parsed) remark(root strictyaml.Node, f frontMatter, r team.Role) {
	file := originOf(root)
	remark := func(mild bool, key, format string, args ...any) {
		n := noticeOf(file, root.At(fmt.Errorf(format, args...), strictyaml.Key(key)))
		n.mild = mild
		p.notices = append(p.notices, n)
	}
	if f.Model != "" && strings.TrimSpace(f.Model) != team.Inherit && r.Model == "" {
		remark(false, "model", "model: %q cannot be the name of a model; its members use the team's default", team.Clip(f.Model, 80))
	}
	if f.TheirTurns != 0 && f.TheirTurns != r.MaxTurns {
		remark(false, "maxTurns", "maxTurns: %d does not count beside max_turns: %d", f.TheirTurns, r.MaxTurns)
	}
	if f.TheirMode != "" && f.Policy.Mode != "" && f.Policy.Mode != f.mode() {
		remark(false, "permissionMode", "permissionMode: %s does not count beside permission_mode: %s", f.TheirMode, f.Policy.Mode)
	}
	if len(r.MCPServers) > 0 {
		remark(true, "mcpServers", "the names of mcpServers are kept, and nothing uses them yet")
	}
}

// originOf returns the file of root.
func originOf(root strictyaml.Node) string {
	origin := root.Origin()
	return origin[:strings.LastIndex(origin, ":")]
}

// byteOrderMark begins the files of some editors.
const byteOrderMark = "\uFEFF"

// hasFrontMatter reports whether a file may be a role file.
func hasFrontMatter(src []byte) bool {
	return bytes.HasPrefix(bytes.TrimPrefix(src, []byte(byteOrderMark)), []byte("---"))
}

// divide returns the front matter of a role file and what follows it.
func divide(file string, src []byte) (head, body []byte, err error) {
	src = bytes.TrimPrefix(src, []byte(byteOrderMark))
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	begun, from, at := false, 0, 0
	for line := range bytes.Lines(src) {
		is := string(bytes.TrimRight(line, " \t\n")) == "---"
		at += len(line)
		switch {
		case !begun && !is:
			return nil, nil, noFrontMatter(file, "it has no front matter")
		case !begun:
			begun, from = true, at
		case is:
			return src[from : at-len(line)], src[at:], nil
		}
	}
	if !begun {
		return nil, nil, noFrontMatter(file, "it has no front matter")
	}
	return nil, nil, noFrontMatter(file, "its front matter has no end")
}

func noFrontMatter(file, what string) error {
	return &strictyaml.Fault{File: file, Line: 1, Column: 1, Err: team.Errorf(team.InvalidArgument, "%s", what).
		WithHint("a role file begins with ---, name and description in YAML, and ---; the instructions follow")}
}

func nameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), ".md") }
