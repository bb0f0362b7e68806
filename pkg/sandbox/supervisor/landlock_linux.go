package supervisor

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of Landlock, for the calling thread alone; see landlock(7).

// LandlockABI returns the version of Landlock that the kernel has. Errors: ENOSYS without it, EOPNOTSUPP if it is turned off.
func LandlockABI() (int, error) {
	version, _, err := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return int(version), failed(err)
}

func createRuleset(a unix.LandlockRulesetAttr) (ruleset int, err error) {
	const size = unsafe.Offsetof(a.Scoped) + unsafe.Sizeof(a.Scoped) // fields of later kernels would be refused
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&a)), size, 0)
	return int(fd), failed(e)
}

func addRule(ruleset int, a unix.LandlockPathBeneathAttr) error {
	_, _, err := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&a)), 0, 0, 0)
	return failed(err)
}

func restrictSelf(ruleset int) error {
	_, _, err := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0)
	return failed(err)
}

func failed(err syscall.Errno) error {
	if err != 0 {
		return err
	}
	return nil
}
