package toolchain_test

import (
	"fmt"
	"testing/fstest"

	"agentteam/pkg/execenv/toolchain"
)

func Example() {
	host := toolchain.Host{
		FS: fstest.MapFS{
			"usr/bin/git":                   {},
			"home/ann/sdk/bin/go":           {},
			"home/ann/sdk/lib/time.zip":     {},
			"home/ann/.config/gh/hosts.yml": {},
			"home/ann/.ssh/bin/x":           {},
		},
		Env: func(name string) (string, bool) {
			value := map[string]string{"HOME": "/home/ann", "PATH": "/home/ann/.ssh/bin:/home/ann/sdk/bin:/usr/bin"}[name]
			return value, value != ""
		},
	}
	member := toolchain.Member{Home: "/var/lib/homes/coder-1", Writable: []string{"/home/ann/project"}}

	granted, err := toolchain.Of(host, member, []string{"gh"})
	fmt.Println(granted.Env[0])
	fmt.Println(granted.Omitted[0])
	fmt.Println(granted.ReadOnly, err)
	_, err = toolchain.Credentials(host, []string{"npm"})
	fmt.Println(err)
	// Output:
	// PATH=/home/ann/sdk/bin:/usr/bin
	// /home/ann/.ssh/bin
	// [/home/ann/.config/gh /home/ann/sdk] <nil>
	// credentials "npm" are not there: looked for ~/.npmrc, NPM_TOKEN, NODE_AUTH_TOKEN, NPM_CONFIG_USERCONFIG
}
