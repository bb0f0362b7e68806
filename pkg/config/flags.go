package config

import "github.com/spf13/pflag"

// FlagsOf returns the Sources.Flags of a command: the flags that were given.
func FlagsOf(lookup func(name string) *pflag.Flag) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		f := lookup(name)
		if f == nil || !f.Changed {
			return "", false
		}
		return f.Value.String(), true
	}
}
