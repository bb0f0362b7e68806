package toolchain_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/execenv/toolchain"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
	"agentteam/pkg/tool/command"
)

// levels runs a test in a sandbox of each level that confines.
func levels(t *testing.T, test func(t *testing.T, s sandbox.Sandbox)) {
	for _, level := range []team.Sandbox{team.Bubblewrap, team.Confined} {
		t.Run(string(level), func(t *testing.T) {
			s, err := sandbox.Find(t.Context(), level)
			testenv.Need(t, err)
			test(t, s)
		})
	}
}

// The same jobs end well at each level that confines, without a network.
func TestJobsInSandbox(t *testing.T) {
	levels(t, func(t *testing.T, s sandbox.Sandbox) {
		runJobs(t, func(t *testing.T, dir string, m toolchain.Member, g toolchain.Grant) command.Runner {
			run, err := s.Runner(sandbox.Box{Dir: dir, Home: m.Home, ReadOnly: g.ReadOnly, Write: []string{m.Cache}, Env: g.Env})
			if err != nil {
				t.Fatal(err)
			}
			return run
		})
	})
}

// users are what version managers and caches have below the home of a person, as programs of the shell that work as the real
// ones do: a shim or proxy starts the version that was chosen, which builds from the cache of what was fetched.
var users = map[string]string{
	".cargo/bin/cargo":                    "exec \"$RUSTUP_HOME/toolchains/stable/bin/cargo\"",
	".rustup/toolchains/stable/bin/cargo": "test \"$CARGO_NET_OFFLINE\" = true && echo \"rust: $(cat ~/.cargo/registry/cache/dep)\"",
	".cargo/registry/cache/dep":           "a crate",
	".pyenv/shims/python":                 "exec \"$PYENV_ROOT/versions/$PYENV_VERSION/bin/python\"",
	".pyenv/versions/3.11/bin/python":     "test \"$PIP_NO_INDEX\" = 1 && echo \"python: $(cat ~/.cache/pip/http-v2/dep)\"",
	".cache/pip/http-v2/dep":              "a wheel",
	".nvm/versions/node/v22/bin/npm":      "test \"$npm_config_offline\" = true && echo \"node: $(cat ~/.npm/_cacache/dep) of $(basename \"$NVM_DIR\")\"",
	".nvm/versions/node/v22/lib/x":        "",
	".npm/_cacache/dep":                   "a package",
	"go/pkg/mod/dep":                      "a module",
}

// Without a network rustup, pyenv, nvm and Go's modules build from the person's folders, which no command can change.
func TestToolchainsInSandbox(t *testing.T) {
	levels(t, func(t *testing.T, s sandbox.Sandbox) {
		dir, home := t.TempDir(), t.TempDir()
		for name, text := range users {
			name = filepath.Join(home, name)
			if filepath.Base(filepath.Dir(name)) == "bin" || filepath.Base(filepath.Dir(name)) == "shims" {
				text = "#!/bin/sh\n" + text + "\n"
			}
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		env := map[string]string{"HOME": home, "PYENV_VERSION": "3.11", "PATH": home + "/.cargo/bin:" + home + "/.pyenv/shims:" + home + "/.nvm/versions/node/v22/bin:/usr/bin:/bin"}
		host := toolchain.This()
		host.Env = func(name string) (string, bool) { value, ok := env[name]; return value, ok }
		m := toolchain.Member{Home: filepath.Join(t.TempDir(), "home"), Cache: filepath.Join(t.TempDir(), "builds"), Writable: []string{dir}}
		g, err := toolchain.Of(host, m, nil)
		if err == nil {
			err = g.Populate()
		}
		if err != nil {
			t.Fatal(err)
		}
		run, err := s.Runner(sandbox.Box{Dir: dir, Home: m.Home, ReadOnly: g.ReadOnly, Write: []string{m.Cache}, Env: g.Env})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		const script = `cargo; python; npm; echo "go: $(cat "$GOMODCACHE/dep"), $GOPROXY"
			for at in ~/.cargo/registry "$RUSTUP_HOME" "$PYENV_ROOT" "$NVM_DIR" ~/.npm/_cacache ~/.cache/pip/http-v2 "$GOMODCACHE"; do ! touch "$at/planted" 2>/dev/null || echo "written: $at"; done`
		exit, err := run.Run(t.Context(), command.Command{Args: []string{"sh", "-c", script}, Dir: dir, Output: &out, Limit: time.Minute})
		const want = "rust: a crate\npython: a wheel\nnode: a package of .nvm\ngo: a module, off\n"
		if err != nil || exit.Code != 0 || out.String() != want {
			t.Errorf("%+v, %v: %s", exit, err, &out)
		}
	})
}
