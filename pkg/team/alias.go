package team

import "regexp"

// maxAliasBytes is the longest name of a model that a process's settings may have.
const maxAliasBytes = 64

// Inherit is the name of no model: in role files of other programs it is the absence of
// one.
const Inherit = "inherit"

// AliasAllowed says, after "is not", what a name must be that settings give a model.
const AliasAllowed = "a name of up to 64 letters, digits and . _ : / @ + -, beginning with a letter or digit, other than inherit"

var aliasPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`)

// IsAlias reports whether the settings of some process may call a model by this
// name. The names of models themselves are allowed, so that a role file written for
// another program can be served as it is.
func IsAlias(name string) bool {
	return len(name) <= maxAliasBytes && name != Inherit && aliasPattern.MatchString(name)
}
