package telemetry

import "runtime/debug"

// Version is the version of this program: the module version if it was installed
// from a tagged release, the commit's pseudo-version (with "+dirty" if files had
// changed) if it was built in a clone, else "devel".
//
// The go command stamps it into the binary; there is no file to keep up to date.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
