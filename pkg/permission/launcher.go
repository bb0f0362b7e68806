package permission

import (
	"regexp"
	"slices"
	"strings"
)

// launcher is a command of a program that runs the command in its arguments, in an environment
// that the project or a registry of packages decides on. So a rule for the command itself does
// not allow it.
type launcher struct {
	wrapper
	fetches bool // the command is named by its package, which may have a version
	mixed   bool // also options behind the command are the launcher's, up to "--"
	dashed  bool // the command is behind "--"
	python  bool // it runs scripts and modules of Python, too
}

// launchers are by program and command. Options that choose another program or package are not
// among those that are known.
var launchers = map[string]launcher{
	"uv run": {wrapper: wrapper{flags: "qv", long: []string{"--quiet", "--verbose", "--all-extras", "--no-dev", "--only-dev", "--no-sync", "--locked", "--frozen",
		"--isolated", "--active", "--all-groups", "--offline", "--exact", "--extra=", "--group=", "--no-group=", "--only-group=", "--package="}}, python: true},
	"uvx":         {wrapper: wrapper{flags: "qv", long: []string{"--quiet", "--verbose", "--offline"}}, fetches: true},
	"uv tool run": {wrapper: wrapper{flags: "qv", long: []string{"--quiet", "--verbose", "--offline"}}, fetches: true},
	"poetry run":  {}, "pipenv run": {}, "pdm run": {}, "rye run": {}, "hatch run": {}, "bundle exec": {},
	"asdf exec": {}, "pyenv exec": {}, "rbenv exec": {}, "nodenv exec": {}, "goenv exec": {},
	"pipx run":    {wrapper: wrapper{flags: "qv", long: []string{"--quiet", "--verbose", "--no-cache"}}, fetches: true},
	"conda run":   {wrapper: wrapper{values: "n", long: []string{"--name=", "--no-capture-output", "--live-stream"}}},
	"mamba run":   {wrapper: wrapper{values: "n", long: []string{"--name="}}},
	"rustup run":  {wrapper: wrapper{long: []string{"--install"}, operands: 1}},
	"direnv exec": {wrapper: wrapper{operands: 1}},
	"npx":         {wrapper: wrapper{flags: "yq", long: []string{"--yes", "--no", "--no-install", "--quiet", "--offline"}}, fetches: true},
	"npm exec":    {wrapper: wrapper{flags: "yq", long: []string{"--yes", "--no", "--quiet", "--offline"}}, fetches: true, mixed: true},
	"npm x":       {wrapper: wrapper{flags: "yq", long: []string{"--yes", "--no", "--quiet", "--offline"}}, fetches: true, mixed: true},
	"pnpm exec":   {}, "yarn exec": {}, "pnpm dlx": {fetches: true}, "pnpx": {fetches: true}, "yarn dlx": {fetches: true, wrapper: wrapper{flags: "q", long: []string{"--quiet"}}},
	"bunx":      {wrapper: wrapper{long: []string{"--bun", "--silent", "--verbose"}}, fetches: true},
	"bun x":     {wrapper: wrapper{long: []string{"--bun", "--silent", "--verbose"}}, fetches: true},
	"mise exec": {dashed: true}, "mise x": {dashed: true}, "doppler run": {dashed: true}, "op run": {dashed: true}, "aws-vault exec": {dashed: true}, "chamber exec": {dashed: true},
}

// launching returns the launcher that words name, and the words behind its name. It reports false if
// it is not known whether they name one.
func launching(base string, words []word) (with launcher, rest []word, known bool) {
	if with, ok := launchers[base]; ok {
		return with, words[1:], true
	}
	known = true
	for name, with := range launchers {
		fields := strings.Fields(name)
		if fields[0] != base || len(words) < 2 {
			continue
		}
		is := true
		for i := 1; is && i < len(fields); i++ {
			if i < len(words) && (words[i].unknown() || words[i].option() && slices.ContainsFunc(words[i+1:], func(w word) bool { return w.unknown() || w.is(fields[i]) })) {
				known = false // an option may have a value
			}
			is = i < len(words) && words[i].is(fields[i])
		}
		if is {
			return with, words[len(fields):], true
		}
	}
	return launcher{}, nil, known
}

func (w word) unknown() bool { return w.glob || w.expand }

// option reports whether the word is an option, or may become one.
func (w word) option() bool { return w.mayBeOption() || strings.HasPrefix(w.text.String(), "-") }

// launch looks at the command that a launcher runs.
func (r *reader) launch(l *line, c *call, base string, words []word) {
	with, rest, known := launching(base, words)
	if !known {
		c.anything("it is not known whether " + base + " runs a command")
	}
	if len(rest) == 0 {
		return
	}
	run, understood := with.command(rest)
	if len(run) > 0 {
		c.unnamed = c.text[:len(c.text)-len(join(run, false))]
		understood = understood && !slices.ContainsFunc(rest[:len(rest)-len(run)], word.unknown)
		with.mixed = with.mixed && !rest[max(0, len(rest)-len(run)-1)].is("--")
		run, understood = with.named(run, understood)
	}
	switch {
	case !understood:
		c.anything("what " + base + " runs is not known")
	case len(run) > 0:
		c.names = nil
		c.inside = new(line)
		c.inside.calls = []call{r.call(l, run)}
	}
}

// command skips what is before the command, as far as that is known.
func (with launcher) command(words []word) (rest []word, understood bool) {
	if with.dashed {
		i := slices.IndexFunc(words, func(w word) bool { return w.is("--") })
		if i < 0 || slices.ContainsFunc(words[:i], word.option) {
			return nil, false
		}
		return words[i+1:], true
	}
	rest, understood = with.options(words)
	if with.python && len(rest) > 1 && rest[0].is("-m", "--module") {
		return rest, true
	}
	rest = rest[min(with.operands, len(rest)):]
	return rest, understood && (len(rest) == 0 || !rest[0].option())
}

// named returns the words of the command that the launcher runs, as they are without it.
func (with launcher) named(words []word, understood bool) (run []word, ok bool) {
	run = slices.Clone(words)
	for i := 1; with.mixed && i < len(run); i++ {
		if run[i].is("--") {
			run = slices.Delete(run, i, i+1)
			break
		}
		if run[i].split || run[i].option() {
			return nil, false
		}
	}
	first, plain := run[0].plain()
	switch {
	case !understood, strings.Contains(first, ":"): // an address, or an environment and a command in it
		return nil, false
	case !plain:
	case with.python && (first == "-m" || first == "--module"):
		return append(known("python", "-m"), run[1:]...), true
	case with.python && (strings.HasSuffix(first, ".py") || strings.HasSuffix(first, ".pyw")):
		return append(known("python"), run...), true
	case with.fetches && strings.IndexByte("./", first[0]) < 0:
		m := packageName.FindStringSubmatch(first)
		if m == nil {
			return nil, false
		}
		run[0] = known(m[1])[0]
	}
	return run, true
}

// packageName is the name of a package, which may have a scope and a version.
var packageName = regexp.MustCompile(`^(?:@[^/@]+/)?([^/@]+)(?:@[^/]*)?$`)
