package team

import "regexp"

// maxAliasBytes bounds the names of models in a process's settings.
const maxAliasBytes = 64

// Inherit names no model: role files of other programs write it for no choice.
const Inherit = "inherit"

// AliasAllowed completes "is not ..." in an error about the name of a model in settings.
const AliasAllowed = "a name of up to 64 letters, digits and . _ : / @ + -, beginning with a letter or digit, other than inherit"

var aliasPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`)

// IsAlias reports whether the settings of a process may call a model by this name. The endpoints' names are
// allowed too, so that a role file of another program works unchanged.
func IsAlias(name string) bool {
	return len(name) <= maxAliasBytes && name != Inherit && aliasPattern.MatchString(name)
}
