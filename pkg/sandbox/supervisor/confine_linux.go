package supervisor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confine confines the calling thread, and what it starts, for ever. Landlock and the
// capabilities of the rest of the process stay as they are: it has to end what is confined.
func confine(c Confinement) error {
	ruleset, err := rules(c)
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := restrictSelf(ruleset); err != nil {
		return fmt.Errorf("restrict by Landlock: %w", err)
	}
	return load(c.Filter)
}

// The rights of Landlock, by the ABI that has brought them. See landlock(7).
const (
	rightsToRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsOfFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

func handled(abi int) (a unix.LandlockRulesetAttr) {
	a.Handled_access_fs = 1<<13 - 1
	for _, later := range []struct {
		abi    int
		rights uint64
	}{{2, unix.LANDLOCK_ACCESS_FS_REFER}, {3, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, {5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}, {9, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX}} {
		if abi >= later.abi {
			a.Handled_access_fs |= later.rights
		}
	}
	if abi >= 4 {
		a.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return a
}

// rules returns a ruleset of Landlock.
func rules(c Confinement) (ruleset int, err error) {
	abi, err := LandlockABI()
	if err != nil {
		return 0, fmt.Errorf("ask for Landlock: %w", err)
	}
	attr := handled(abi)
	if ruleset, err = createRuleset(attr); err != nil {
		return 0, fmt.Errorf("make a Landlock ruleset: %w", err)
	}
	for _, grant := range []struct {
		paths  []string
		rights uint64
	}{
		{c.Read, rightsToRead},
		{c.Write, attr.Handled_access_fs &^ (unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK)},
		{c.Devices, unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	} {
		for _, path := range grant.paths {
			if err := allow(ruleset, path, grant.rights&attr.Handled_access_fs); err != nil && !errors.Is(err, fs.ErrNotExist) {
				unix.Close(ruleset)
				return 0, fmt.Errorf("allow %s: %w", path, err)
			}
		}
	}
	return ruleset, nil
}

// allow adds a path to a ruleset.
func allow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFile // the kernel refuses rights of folders
	}
	return addRule(ruleset, unix.LandlockPathBeneathAttr{Parent_fd: int32(fd), Allowed_access: rights})
}

// dropCapabilities takes all privileges from the thread; root's, too, in what it starts.
func dropCapabilities() error {
	for c := uintptr(0); c <= 63; c++ {
		// It fails after the last that the kernel knows. Who may not drop them has none
		// to lose, and no_new_privs keeps it so.
		if unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) != nil {
			break
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("drop the capabilities: %w", err)
	}
	return nil
}

// load has the kernel judge each system call of this thread, and what it starts, by a filter.
func load(filter []byte) error {
	const size = 8 // of one instruction
	if len(filter) < size {
		return errors.New("the filter of system calls is empty")
	}
	program := make([]unix.SockFilter, len(filter)/size)
	for i := range program {
		b := filter[i*size:]
		program[i] = unix.SockFilter{Code: binary.NativeEndian.Uint16(b), Jt: b[2], Jf: b[3], K: binary.NativeEndian.Uint32(b[4:])}
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&p)), 0, 0); err != nil {
		return fmt.Errorf("load the filter of system calls: %w", err)
	}
	return nil
}
