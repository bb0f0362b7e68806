package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// divide returns the paths that commands may write at level Confined. Landlock only grants rights, for a folder with everything below
// it. So a folder with a read-only path is divided: its other entries are writable, the folder is not, and nothing directly in it can
// be created, renamed or removed. A symbolic link is no entry: its target is judged at its own place.
func (v view) divide() (write, divided []string, err error) {
	keep := slices.DeleteFunc(v.having(reads), func(path string) bool { _, err := os.Lstat(path); return err != nil })
	for todo := v.having(writes); len(todo) > 0; {
		path := todo[0]
		todo = todo[1:]
		if slices.Contains(keep, path) {
			continue
		}
		if !slices.ContainsFunc(keep, func(k string) bool { return below(k, path) }) {
			write = append(write, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		divided = append(divided, path)
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink == 0 {
				todo = append(todo, filepath.Join(path, e.Name()))
			}
		}
	}
	return write, divided, nil
}

// The rights of Landlock, by the ABI that introduced them. See landlock(7).
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

// ruleset returns the view as a Landlock ruleset, without missing paths. divided: the workspace is divided.
func (v view) ruleset() (file *os.File, divided bool, err error) {
	write, parts, err := v.divide()
	if err != nil {
		return nil, false, err
	}
	abi, err := landlockABI()
	if err != nil {
		return nil, false, fmt.Errorf("ask for Landlock: %w", err)
	}
	attr := handled(abi)
	set, err := createRuleset(attr)
	if err != nil {
		return nil, false, fmt.Errorf("make a Landlock ruleset: %w", err)
	}
	file = os.NewFile(uintptr(set), "ruleset")
	for _, grant := range []struct {
		paths  []string
		rights uint64
	}{
		{slices.Concat(readable(), v.having(reads), parts), rightsToRead},
		{write, attr.Handled_access_fs &^ (unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK)},
		{devices, unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	} {
		for _, path := range grant.paths {
			if err := permit(set, path, grant.rights&attr.Handled_access_fs); err != nil && !errors.Is(err, fs.ErrNotExist) {
				file.Close()
				return nil, false, fmt.Errorf("allow %s: %w", path, err)
			}
		}
	}
	return file, slices.Contains(parts, v.dir), nil
}

// permit adds a path to a ruleset.
func permit(ruleset int, path string, rights uint64) error {
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

// landlockABI returns the version of Landlock that the kernel has. Errors: ENOSYS without it, EOPNOTSUPP if it is turned off.
func landlockABI() (int, error) {
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

func failed(err syscall.Errno) error {
	if err != 0 {
		return err
	}
	return nil
}
