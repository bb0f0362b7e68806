package telemetry

import "runtime/debug"

// version is set by `make build` and the container build, with -ldflags -X: without access to git the go command stamps
// no version.
var version string

// Version returns the version of this program: the version that the build set; else the module version if it was
// installed from a tagged release, the commit's pseudo-version (with "+dirty" if files had changed) if it was built in
// a clone; else "devel".
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
