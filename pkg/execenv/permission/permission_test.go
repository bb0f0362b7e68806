package permission_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ rule, want string }{
		{"", `deny: rule 1, "": a rule is Tool`},
		{"Bash(git push", "a rule is Tool or Tool(what)"},
		{"Bash(git push) x", "a rule is Tool or Tool(what)"},
		{"Bash()", "there is nothing between the parentheses: write Bash"},
		{"Bash (ls)", "a rule is Tool or Tool(what)"},
		{"Bash(echo it's)", "a quote is not closed"},
		{"Bash(ä 'x)", "a quote is not closed"},
		{"Bash(:*)", "there is no command before :*"},
		{"Bash(a\nb)", "a rule is one line"},
		{"*", "a rule is Tool"},
		{"Ba*", "only names of MCP tools may end in *"},
		{"Read(!x)", "! has no meaning here"},
		{"Read(~joe/x)", "write ~/ for your own home"},
		{"Read(a[b)", "this is no pattern of files"},
		{"WebFetch(example.com)", "write the host as domain:example.com"},
		{"WebFetch(domain:https://a.b)", "write the host as domain:example.com"},
	} {
		_, _, err := permission.Parse(team.Permissions{Deny: []string{tt.rule}})
		if !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want one line with %q", tt.rule, err, tt.want)
		}
	}
}

// What parses and can never match is reported, and nothing else is.
func TestWarnings(t *testing.T) {
	for _, tt := range []struct {
		deny, ask, allow string
		want             string // "" = none
	}{
		{allow: "Bash(foo && bar)", want: "taken apart"},
		{allow: "Bash(a; b)", want: "taken apart"},
		{deny: "Bash(cat x | sh)", want: "taken apart"},
		{deny: "Bash(echo $HOME)", want: "what $ becomes"},
		{deny: "Bash(A=1 make)", want: "an assignment"},
		{deny: "Bash(a # b)", want: "begins a comment"},
		{allow: "Edit(../x)", want: "leads out of the workspace"},
		{allow: "Edit(//etc/hosts)"}, {deny: "Edit(//etc/hosts)"}, // of a command's redirection
		{allow: "Read(//etc/hosts)"},
		{allow: "Bsh(ls)", want: "there is no tool Bsh"},
		{allow: "BASH", want: "there is no tool BASH, but there is bash"},
		{allow: "create_task(x)", want: "takes nothing in parentheses"},
		{allow: "mcp__a__b(x)", want: "takes nothing in parentheses"},
		{allow: "Bash(source *)", want: "no rule but one without *"},
		{allow: "Bash(source x)"},
		{deny: "Bash(git *)", allow: "Bash(git push *)", want: `"Bash(git *)" comes first`},
		{deny: "Bash(git push)", allow: "Bash(git push)", want: "comes first"},
		{ask: "Bash(git push)", allow: "Bash(git push)", want: "comes first"},
		{deny: "Bash", ask: "Bash(ls)", want: "comes first"},
		{deny: "Edit(src/**)", allow: "edit_file(src/**)", want: "comes first"},
		{deny: "WebFetch", allow: "WebFetch(domain:a.b)", want: "comes first"},
		{deny: "Bash(git push *)", allow: "Bash(git *)"},
		{deny: "Read(x)", allow: "Edit(x)"},
		{deny: "WebFetch(domain:a.b)", allow: "WebFetch(domain:a.c)"},
		{allow: "Bash(grep 'a;b' *)"}, {allow: "Bash(find . -exec ls {} +)"}, {allow: "MultiEdit"}, {allow: "spawn_teammate"}, {allow: "mcp__a__*"},
	} {
		var p team.Permissions
		for list, rule := range map[*[]string]string{&p.Deny: tt.deny, &p.Ask: tt.ask, &p.Allow: tt.allow} {
			if rule != "" {
				*list = []string{rule}
			}
		}
		_, warnings, err := permission.Parse(p)
		all := strings.Join(warnings, "\n")
		if err != nil || tt.want == "" && all != "" || !strings.Contains(all, tt.want) || tt.want != "" && len(warnings) != 1 {
			t.Errorf("%+v: %q, %v, want %q", p, all, err, tt.want)
		}
	}
}

// A rule may name each tool that there is, also as other programs do.
func TestEveryToolHasAName(t *testing.T) {
	files, err := filepath.Glob("../../tool/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	ofAgents, err := filepath.Glob("../../agent/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, ofAgents...)
	made, seen := regexp.MustCompile(`(?:tool\.New\(|\{Name: )"([A-Za-z_]+)"(?:, Dialect)?[^}\n]*Dialect|tool\.New\("([A-Za-z_]+)"`), 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range made.FindAllStringSubmatch(string(text), -1) {
			seen++
			name := m[1] + m[2]
			if _, warnings, err := permission.Parse(team.Permissions{Ask: []string{name}}); err != nil || len(warnings) > 0 {
				t.Errorf("%s: the tool %s: %v, %v", file, name, warnings, err)
			}
		}
	}
	if seen < 30 {
		t.Errorf("%d names of tools are in the sources, want at least 30", seen)
	}
}

// A tool that has no kind yet is judged as one for files once it takes a path.
func TestToolWithoutKind(t *testing.T) {
	deny := rules(t, team.Permissions{Deny: []string{"Read(.env)", "Edit(src/**)"}})
	for _, tt := range []struct {
		tool   string
		path   any
		traits tool.Traits
		want   permission.Decision
	}{
		{"count_lines", ".env", tool.Traits{ReadOnly: true}, permission.Deny},
		{"count_lines", "src/a", tool.Traits{ReadOnly: true}, permission.None},
		{"sort_lines", "src/a", tool.Traits{Writes: true}, permission.Deny},
		{"sort_lines", ".env", tool.Traits{Writes: true}, permission.Deny},
		{"count_lines", nil, tool.Traits{ReadOnly: true}, permission.None},
		{"mcp__hub__read", "src/a", tool.Traits{}, permission.None}, // whose path may be none of ours
	} {
		if v := deny.Decide(call(t, tt.tool, tt.traits, map[string]any{"path": tt.path}), workspace); v.Decision != tt.want {
			t.Errorf("%s of %v is %s, want %s", tt.tool, tt.path, v.Decision, tt.want)
		}
	}
}

// Tools for files, for the web and of MCP servers, by the names of all programs.
func TestTools(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	path := func(s string) map[string]any { return map[string]any{"path": s} }
	patch := func(lines ...string) map[string]any {
		return map[string]any{"path": "", "patch": "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch"}
	}
	for _, tt := range []struct {
		rules team.Permissions
		tool  string
		args  map[string]any
		want  permission.Decision
	}{
		{team.Permissions{Deny: []string{"Read(./secrets/**)"}}, "read_file", path("secrets/a"), permission.Deny},
		{team.Permissions{Deny: []string{"Read(./secrets/**)"}}, "read_file", path("/ws/x/../secrets/a"), permission.Deny},
		{team.Permissions{Deny: []string{"Read(./secrets/**)"}}, "read_file", path("sub/secrets/a"), permission.None},
		{team.Permissions{Deny: []string{"Read(secrets/**)"}}, "grep", path("secrets"), permission.Deny},
		{team.Permissions{Deny: []string{"Read(secrets/**)"}}, "glob", path("secrets"), permission.Deny},
		{team.Permissions{Deny: []string{"Read(secrets/**)"}}, "edit_file", path("secrets/x"), permission.Deny},
		{team.Permissions{Deny: []string{"read_file(.env)"}}, "read_file", path("a/b/.env"), permission.Deny},
		{team.Permissions{Deny: []string{"Read(a/**/b/c)"}}, "read_file", path("a/b/x/b/c"), permission.Deny},
		{team.Permissions{Deny: []string{"Read(~/.ssh/**)"}}, "read_file", path("/home/me/.ssh/id"), permission.Deny},
		{team.Permissions{Deny: []string{"Read(//etc/**)"}}, "read_file", path("/etc/x"), permission.Deny},
		{team.Permissions{Deny: []string{"Read(/etc/**)"}}, "read_file", path("/etc/x"), permission.None},
		{team.Permissions{Deny: []string{"Read(/etc/**)"}}, "read_file", path("etc/x"), permission.Deny},
		{team.Permissions{Allow: []string{"Edit(src/**)"}}, "edit_file", path("src/a"), permission.Allow},
		{team.Permissions{Allow: []string{"Edit(src/**)"}}, "write_file", path("src/a"), permission.Allow},
		{team.Permissions{Allow: []string{"Edit(src/**)"}}, "write_file", path("src/../a"), permission.None},
		{team.Permissions{Allow: []string{"Edit(*.go)"}}, "edit_file", path("../x.go"), permission.None},
		{team.Permissions{Deny: []string{"Edit(*.go)"}}, "edit_file", path("../x.go"), permission.Deny},
		{team.Permissions{Allow: []string{"Write(src/**)"}}, "edit_file", path("src/a"), permission.None},
		{team.Permissions{Allow: []string{"Read(src/**)"}}, "edit_file", path("src/a"), permission.None},
		{team.Permissions{Deny: []string{"MultiEdit(src/**)"}}, "edit_file", path("src/a"), permission.Deny},
		// A patch is judged by the strictest verdict on one of its files.
		{team.Permissions{Allow: []string{"Edit(src/**)"}}, "edit_file", patch("*** Delete File: src/a", "*** Add File: src/b", "+x"), permission.Allow},
		{team.Permissions{Allow: []string{"Edit(src/**)"}}, "edit_file", patch("*** Delete File: src/a", "*** Delete File: b"), permission.None},
		{team.Permissions{Allow: []string{"Edit(src/**)"}}, "edit_file", patch("*** Update File: src/a", "*** Move to: b"), permission.None},
		{team.Permissions{Allow: []string{"Edit(src/**)"}, Ask: []string{"apply_patch(src/b)"}}, "edit_file", patch("*** Delete File: b", "*** Delete File: src/b", "*** Delete File: src/c"), permission.Ask},
		{team.Permissions{Allow: []string{"Edit"}, Deny: []string{"Edit(b)"}}, "edit_file", patch("*** Delete File: a", "*** Delete File: b"), permission.Deny},
		{team.Permissions{Allow: []string{"Edit"}, Deny: []string{"Read(.env)"}}, "edit_file", patch("*** Update File: a", "@@", "+x", "*** Delete File: sub/.env"), permission.Deny},
		{team.Permissions{Allow: []string{"Edit"}, Deny: []string{"Write(b)"}}, "edit_file", patch("*** Update File: a", "*** Move to: b"), permission.Deny},
		{team.Permissions{Allow: []string{"Edit"}, Deny: []string{"Write(b)"}}, "edit_file", patch("*** Update File: b", "@@", "+x"), permission.Allow},
		{team.Permissions{Ask: []string{"write_file"}}, "write_file", path("x"), permission.Ask},
		{team.Permissions{Ask: []string{"Grep"}}, "grep", path("x"), permission.Ask},
		{team.Permissions{Ask: []string{"Grep"}}, "glob", path("x"), permission.None},
		{team.Permissions{Allow: []string{"WebFetch(domain:example.com)"}}, "web_fetch", map[string]any{"url": "https://Example.com./x"}, permission.Allow},
		{team.Permissions{Allow: []string{"WebFetch(domain:example.com)"}}, "web_fetch", map[string]any{"url": "https://example.com@evil.com/"}, permission.None},
		{team.Permissions{Allow: []string{"WebFetch(domain:example.com)"}}, "web_fetch", map[string]any{"url": "https://a.example.com/"}, permission.None},
		{team.Permissions{Allow: []string{"WebFetch(domain:*.example.com)"}}, "web_fetch", map[string]any{"url": "https://a.example.com/"}, permission.Allow},
		{team.Permissions{Allow: []string{"WebFetch(domain:*.example.com)"}}, "web_fetch", map[string]any{"url": "https://badexample.com/"}, permission.None},
		{team.Permissions{Allow: []string{"mcp__git"}}, "mcp__git__log", nil, permission.Allow},
		{team.Permissions{Allow: []string{"mcp__git__*"}}, "mcp__git__log", nil, permission.Allow},
		{team.Permissions{Allow: []string{"mcp__git__log"}}, "mcp__git__log_all", nil, permission.None},
		{team.Permissions{Allow: []string{"mcp__git"}}, "mcp__github__log", nil, permission.None},
		{team.Permissions{Deny: []string{"mcp__git__push"}, Allow: []string{"mcp__git"}}, "mcp__git__push", nil, permission.Deny},
		{team.Permissions{Deny: []string{"Task"}}, "spawn_teammate", nil, permission.Deny},
		{team.Permissions{Deny: []string{"Task"}}, "subagent", nil, permission.Deny},
		{team.Permissions{Deny: []string{"spawn_teammate"}}, "subagent", nil, permission.None},
		{team.Permissions{Deny: []string{"Bash"}}, "read_file", path("x"), permission.None},
	} {
		v := rules(t, tt.rules).Decide(call(t, tt.tool, tool.Traits{}, tt.args), workspace)
		if v.Decision != tt.want {
			t.Errorf("%+v: %s %v is %s, want %s", tt.rules, tt.tool, tt.args, v.Decision, tt.want)
		}
		if v.Decision != permission.None && v.Rule == "" {
			t.Errorf("%+v: %s %v: no rule is named", tt.rules, tt.tool, tt.args)
		}
	}
}

func TestJudge(t *testing.T) {
	edit := call(t, "edit_file", tool.Traits{Writes: true}, map[string]any{"path": "x"})
	mcp := call(t, "mcp__a__b", tool.Traits{}, nil)
	read := call(t, "read_file", tool.Traits{ReadOnly: true}, map[string]any{"path": "x"})
	mail := call(t, "send_message", tool.Traits{Ungated: true}, nil)
	board := call(t, "create_task", tool.Traits{}, nil)
	const allow, ask, deny = permission.Allow, permission.Ask, permission.Deny
	for _, tt := range []struct {
		mode  team.PermissionMode
		level team.Sandbox
		rules team.Permissions
		req   tool.Request
		want  permission.Decision
	}{
		{"", team.Bubblewrap, team.Permissions{}, bash(t, "make"), allow},
		{"", team.Confined, team.Permissions{}, edit, allow},
		{"", team.Unconfined, team.Permissions{}, bash(t, "make"), ask},
		{"", team.Unconfined, team.Permissions{}, edit, ask},
		{"", team.Unconfined, team.Permissions{}, mcp, ask},
		{"", team.Unconfined, team.Permissions{}, read, allow},
		{"", team.Unconfined, team.Permissions{}, mail, allow},
		{"", team.Unconfined, team.Permissions{}, board, allow},
		{"", team.SandboxAuto, team.Permissions{}, bash(t, "make"), ask}, // nothing is known to confine it
		{"", "", team.Permissions{}, bash(t, "make"), ask},
		{"", team.Unconfined, team.Permissions{Ask: []string{"Read(x)"}}, read, ask},
		{"", team.Bubblewrap, team.Permissions{Deny: []string{"create_task"}}, board, deny},
		{team.AcceptEdits, team.Unconfined, team.Permissions{}, edit, allow},
		{team.AcceptEdits, team.Unconfined, team.Permissions{}, bash(t, "make"), ask},
		{team.AcceptEdits, team.Unconfined, team.Permissions{Ask: []string{"Edit(x)"}}, edit, ask},
		{team.AcceptEdits, team.Unconfined, team.Permissions{Deny: []string{"Edit(x)"}}, edit, deny},
		{team.BypassPermissions, team.Unconfined, team.Permissions{}, bash(t, "make"), allow},
		{team.BypassPermissions, team.Unconfined, team.Permissions{Ask: []string{"Bash"}}, bash(t, "make"), allow},
		{team.BypassPermissions, team.Unconfined, team.Permissions{Deny: []string{"Bash(make)"}}, bash(t, "ls; make"), deny},
		{team.BypassPermissions, team.Bubblewrap, team.Permissions{Deny: []string{"Bash(make)"}}, bash(t, "$X"), deny}, // a doubt, and no person is asked
		{team.BypassPermissions, team.Bubblewrap, team.Permissions{Deny: []string{"Bash(rm *)"}, Ask: []string{"Bash(make)"}}, bash(t, "make; $X"), deny},
		{team.BypassPermissions, team.Bubblewrap, team.Permissions{Ask: []string{"Bash(make)"}}, bash(t, "$X"), allow},
		{team.ReadOnlyMode, team.Bubblewrap, team.Permissions{}, edit, deny},
		{team.ReadOnlyMode, team.Bubblewrap, team.Permissions{}, mcp, deny},
		{team.ReadOnlyMode, team.Bubblewrap, team.Permissions{Allow: []string{"Bash", "Edit"}}, edit, deny},
		{team.ReadOnlyMode, team.Bubblewrap, team.Permissions{Allow: []string{"Bash"}}, bash(t, "make"), deny},
		{team.ReadOnlyMode, team.Unconfined, team.Permissions{}, read, allow},
		{team.ReadOnlyMode, team.Unconfined, team.Permissions{}, mail, allow},
		{team.ReadOnlyMode, team.Unconfined, team.Permissions{}, board, allow},
		{team.ReadOnlyMode, team.Unconfined, team.Permissions{Deny: []string{"Read(.env)"}}, bash(t, "cat .env"), deny},
		{team.ReadOnlyMode, team.Unconfined, team.Permissions{Ask: []string{"Bash(cat *)"}}, bash(t, "cat x"), ask},
	} {
		v := permission.Judge(rules(t, tt.rules), tt.mode, tt.level, tt.req, workspace)
		if v.Decision != tt.want {
			t.Errorf("mode %q, sandbox %q, %+v: %s %s is %s, want %s (%s)", tt.mode, tt.level, tt.rules, tt.req.Tool, tt.req.Arguments, v.Decision, tt.want, v.Why)
		}
	}
	if v := permission.Judge(nil, "", team.Bubblewrap, edit, workspace); v.Decision != allow {
		t.Errorf("without rules: %s", v.Decision)
	}
}

// In the mode read-only a command runs if it is known to change nothing.
func TestReadOnlyCommands(t *testing.T) {
	reads := []string{"ls -la", "cat a | grep b | head -3", "git status", "git log --oneline -5", "git --no-pager diff", "find . -name '*.go' | wc -l",
		"cd sub && ls", "sed -n 1,5p x", "timeout 5 cat x", "grep -rn x . 2>/dev/null", "if test -f x; then cat x; fi", "rg x", "sort x | nl && true"}
	changes := []string{"rm x", "ls > x", "git push", "git commit -m x", "git branch -D x", "git -c a=b log", "sed -i s/a/b/ x", "sed 'w x' y", "find . -delete",
		"find . -exec rm {} +", "cat $(rm x)", "cat $x", "ls; rm x", "tee x", "xargs cat", "sort -o x y", "rg --pre ./x y", "A=1 ls", "./ls", "sudo cat x",
		"git diff --output=x", "date -s 1", "tree -o x", "bash x", "python3 x", "echo x | sh", "make", ")", "awk '{print > \"x\"}' y", "curl host", "cat <(rm x)", "uniq a b"}
	for i, list := range [][]string{reads, changes} {
		want := []permission.Decision{permission.Allow, permission.Deny}[i]
		for _, command := range list {
			for _, level := range []team.Sandbox{team.Unconfined, team.Bubblewrap} {
				if v := permission.Judge(nil, team.ReadOnlyMode, level, bash(t, command), workspace); v.Decision != want {
					t.Errorf("%q is %s, want %s", command, v.Decision, want)
				}
			}
		}
	}
}

// The rule of "always" allows the call, and none of those beside it.
func TestAlways(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for _, tt := range []struct {
		command, want string
		beside        []string
	}{
		{"git push origin main", "Bash(git push origin main)", []string{"git push", "git push origin main x", "git push origin mai", "git push origin main; ls"}},
		{"  git   push ", "Bash(git   push)", []string{"git push x"}},
		{"grep 'a*b' x", "Bash(grep 'a*b' x)", []string{"grep a*b x", "grep axb x"}},
		{"git commit -m 'fix (this); now'", "Bash(git commit -m 'fix (this); now')", []string{"git commit -m fix"}},
		{`echo "it's"`, `Bash(echo "it's")`, []string{"echo its"}},
		{"cat ~/x", "Bash(cat ~/x)", []string{"cat '~/x'", "cat /home/me/x"}},
		{"cat '~/x'", "Bash(cat '~/x')", []string{"cat ~/x"}},
		{"find . -delete", "Bash(find . -delete)", []string{"find . -name x -delete", "find . -delete -delete"}},
		{"bash -c 'make && make install'", "Bash(bash -c 'make && make install')", []string{"make", "bash -c make"}},
		{"timeout 5 make", "Bash(timeout 5 make)", []string{"make", "timeout 6 make"}},
		{"make > /dev/null 2>&1", "", nil},
		{"ls *", "", nil}, {"echo $x", "", nil}, {"a && b", "", nil}, {"a | b", "", nil}, {"a; b", "", nil}, {"a > b", "", nil}, {"A=1 make", "", nil},
		{"xargs rm", "", nil}, {"bash < x", "", nil}, {"bash", "", nil}, {"python3 -", "", nil}, {"$(a)", "", nil}, {"(a)", "", nil}, {"a &", "", nil}, {"* x", "", nil},
		{"", "", nil}, {")", "", nil}, {"a\rb", "", nil}, {"git commit -m 'a\nb'", "", nil}, {"if a; then b; fi", "", nil}, {"f() { a; }", "", nil}, {"echo {a,b}", "", nil},
	} {
		rule := permission.Always(bash(t, tt.command))
		if rule != tt.want {
			t.Errorf("always %q: %q, want %q", tt.command, rule, tt.want)
		}
		if rule == "" {
			continue
		}
		r := rules(t, team.Permissions{Allow: []string{rule}})
		if v := r.Decide(bash(t, tt.command), workspace); v.Decision != permission.Allow {
			t.Errorf("%q does not allow %q: %+v", rule, tt.command, v)
		}
		for _, other := range tt.beside {
			if v := r.Decide(bash(t, other), workspace); v.Decision == permission.Allow {
				t.Errorf("%q allows %q", rule, other)
			}
		}
	}
	for _, tt := range []struct {
		tool, arg, value, want string
	}{
		{"edit_file", "path", "src/a.go", "Edit(/src/a.go)"},
		{"write_file", "path", "./a[1]*.go", `Edit(/a\[1]\*.go)`},
		{"edit_file", "path", "/ws/a", "Edit(//ws/a)"},
		{"edit_file", "path", "../a", ""},
		{"edit_file", "path", "", ""},
		{"write_notebook", "path", "a.ipynb", "Edit(/a.ipynb)"}, // a tool that is new: it is judged as one that edits
		{"write_notebook", "path", "../a.ipynb", ""},
		{"write_notebook", "cell", "a.ipynb", ""},
		{"read_file", "path", "a", "Read(/a)"},
		{"grep", "path", "src", ""},
		{"web_fetch", "url", "https://Example.com/x", "WebFetch(domain:example.com)"},
		{"web_fetch", "url", "::", ""},
		{"mcp__a__b", "", "", "mcp__a__b"},
		{"spawn_teammate", "role", "coder", ""},
	} {
		req := call(t, tt.tool, tool.Traits{}, map[string]any{tt.arg: tt.value})
		rule := permission.Always(req)
		if rule != tt.want {
			t.Errorf("always %s %q: %q, want %q", tt.tool, tt.value, rule, tt.want)
		}
		if rule != "" && rules(t, team.Permissions{Allow: []string{rule}}).Decide(req, workspace).Decision != permission.Allow {
			t.Errorf("%q does not allow %s %q", rule, tt.tool, tt.value)
		}
	}
}

// Hands 18: no-ops in front of a command do not hide it, and too many are asked for.
func TestManyCommands(t *testing.T) {
	r := rules(t, team.Permissions{Deny: []string{"Bash(curl *)"}, Allow: []string{"Bash(true)", "Bash(rm *)"}})
	for n, want := range map[int]permission.Decision{49: permission.Allow, 499: permission.Allow, 500: permission.Ask, 5000: permission.Ask} {
		line := strings.Repeat("true;", n) + " rm x"
		if v := r.Decide(bash(t, line), workspace); v.Decision != want {
			t.Errorf("%d no-ops: %s, want %s (%s)", n, v.Decision, want, v.Why)
		}
	}
	if v := r.Decide(bash(t, strings.Repeat("true;", 40)+" curl x"), workspace); v.Decision != permission.Deny {
		t.Errorf("no-ops before what is denied: %s", v.Decision)
	}
	if v := r.Decide(bash(t, "true "+strings.Repeat("x", 64<<10)), workspace); v.Decision != permission.Ask {
		t.Errorf("a long line: %s", v.Decision)
	}
	deep := strings.Repeat("bash -c \"", 1) + "true\""
	for range 4 {
		deep = "bash -c '" + strings.ReplaceAll(deep, "'", `'\''`) + "'"
	}
	if v := r.Decide(bash(t, deep), workspace); v.Decision != permission.Allow {
		t.Errorf("five lines in lines: %s (%s)", v.Decision, v.Why)
	}
	deep = "bash -c '" + strings.ReplaceAll("bash -c '"+strings.ReplaceAll(deep, "'", `'\''`)+"'", "'", `'\''`) + "'"
	if v := r.Decide(bash(t, deep), workspace); v.Decision != permission.Ask {
		t.Errorf("seven lines in lines: %s", v.Decision)
	}
}

// No line takes a machine's memory or minutes: one that has too much of something is a doubt.
func TestGiantLines(t *testing.T) {
	r := rules(t, team.Permissions{Deny: []string{"Bash(git push *)", "Read(.env)", "Edit(src/**)"}})
	for name, line := range map[string]string{
		"arguments": "foo" + strings.Repeat(" a", 20000), "colons": "foo " + strings.Repeat("a:", 20000), "options": "foo -" + strings.Repeat("./x", 10000), "programs": strings.Repeat("sudo env ", 3000) + "ls",
		"braces": "foo {1..100}{1..100}{1..100}", "commas": "foo " + strings.Repeat("{a,b}", 1000), "files": "cp" + strings.Repeat(" src/../b", 5000), "nested": strings.Repeat("$(", 2000) + "ls" + strings.Repeat(")", 2000),
		"loops": strings.Repeat("for i in 1 2 3 4 5 6 7 8 9; do ", 6) + "ls $i; " + strings.Repeat("done; ", 6), "stars": "ls " + strings.Repeat("*a", 10000), "classes": "ls " + strings.Repeat("[a]", 10000), "quotes": "foo '" + strings.Repeat("a b ", 15000) + "'",
		"links": "cat " + strings.Repeat("a/../", 10000) + "x",
	} {
		v := r.Decide(bash(t, line), t.TempDir())
		if v.Decision == permission.Allow || v.Decision == permission.None && name != "options" && name != "files" && name != "links" && name != "stars" && name != "classes" {
			t.Errorf("%s: %s", name, v.Decision)
		}
	}
}

// What is too much to be read may open any file, so that a rule about one asks.
func TestManyCommandsBeforeFile(t *testing.T) {
	r := rules(t, team.Permissions{Deny: []string{"Read(.env)"}, Allow: []string{"Bash(true)", "Bash(cat *)"}})
	for line, want := range map[string]permission.Decision{
		strings.Repeat("true;", 40) + "cat a":             permission.Allow,
		strings.Repeat("true;", 51) + "cat .env":          permission.Deny,
		strings.Repeat("true;", 501) + "cat .env":         permission.Ask,
		"# " + strings.Repeat("x", 64<<10) + "\ncat .env": permission.Ask,
	} {
		if v := r.Decide(bash(t, line), workspace); v.Decision != want {
			t.Errorf("%.20q: %s, want %s (%s)", line, v.Decision, want, v.Why)
		}
	}
}

// The name of a variable in a variable can hold a substitution, which bash runs.
func TestIndirectVariable(t *testing.T) {
	r := rules(t, team.Permissions{Deny: []string{"Bash(git push *)"}, Allow: []string{"Bash(echo *)"}})
	if v := r.Decide(bash(t, `for x in 'a[$(git push >&2)]'; do echo "${!x}"; done`), workspace); v.Decision != permission.Ask {
		t.Errorf("%s (%s)", v.Decision, v.Why)
	}
}

// A search below a folder shows nothing of the files that a rule is about.
func TestHides(t *testing.T) {
	r := rules(t, team.Permissions{Deny: []string{"Read(.env)", "Grep(./secrets/**)"}, Ask: []string{"Read(*.pem)"}})
	for path, want := range map[string]string{"a.go": "", ".env": "grep glob", "sub/.env": "grep glob", "a.pem": "grep glob", "secrets/a": "grep", "secrets": "grep"} {
		var by []string
		for _, tool := range []string{"grep", "glob"} {
			if r.Hides(tool, workspace, workspace)(workspace + "/" + path) {
				by = append(by, tool)
			}
		}
		if got := strings.Join(by, " "); got != want {
			t.Errorf("%s is hidden from %q, want %q", path, got, want)
		}
	}
	if r := rules(t, team.Permissions{Deny: []string{"Bash(git push *)", "Edit(/vendor/)"}, Allow: []string{"Read(.env)"}}); r.Hides("grep", workspace, workspace) != nil {
		t.Error("rules that are not about reading hide something")
	}
	hides := r.Hides("grep", workspace, workspace+"/secrets") // of which the call was judged
	if hides(workspace+"/secrets/a") || !hides(workspace+"/secrets/.env") {
		t.Error("a search in secrets shows .env, or nothing of secrets")
	}
}

// A rule of deny makes nothing that was not allowed before.
func TestDenyNeverAllows(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	all := examples(t)
	var more []string
	for _, e := range all {
		for _, rule := range slices.Concat(e.rules.Deny, e.rules.Ask, e.rules.Allow) {
			if !slices.Contains(more, rule) {
				more = append(more, rule)
			}
		}
	}
	parsed := map[string]*permission.Rules{}
	for _, e := range all {
		for _, rule := range append(more, "") {
			key := e.group + "\x00" + rule
			if parsed[key] != nil {
				continue
			}
			p := e.rules
			if rule != "" {
				p.Deny = append(slices.Clone(p.Deny), rule)
			}
			parsed[key] = rules(t, p)
		}
	}
	for _, e := range all {
		for _, mode := range []team.PermissionMode{"", team.BypassPermissions} {
			before := permission.Judge(parsed[e.group+"\x00"], mode, team.Unconfined, bash(t, e.command), workspace).Decision
			for _, rule := range more {
				after := permission.Judge(parsed[e.group+"\x00"+rule], mode, team.Unconfined, bash(t, e.command), workspace).Decision
				if after < before {
					t.Fatalf("line %d: with deny %q as well %q is %s, and %s before", e.line, rule, e.command, after, before)
				}
			}
		}
	}
}
