package telemetry

import "runtime/debug"

// version is set by `make build` and the container build, with -ldflags -X: where the
// go command is told not to look at git, it stamps nothing by itself.
var version string

// Version is the version of this program: what the build was given; else the module
// version if it was installed from a tagged release, the commit's pseudo-version
// (with "+dirty" if files had changed) if it was built in a clone; else "devel".
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
