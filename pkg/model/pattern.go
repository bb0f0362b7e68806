package model

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled at its first use. Those for errors are many and large, and few
// processes ever get an error.
type pattern func() *regexp.Regexp

func lazy(re string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(re) })
}

func (p pattern) MatchString(s string) bool            { return p().MatchString(s) }
func (p pattern) FindStringSubmatch(s string) []string { return p().FindStringSubmatch(s) }
