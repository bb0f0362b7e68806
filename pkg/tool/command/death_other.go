//go:build !linux

package command

import "syscall"

// dieWithParent does nothing: only Linux has it. The group's guard does the same a moment later.
func dieWithParent(*syscall.SysProcAttr) {}
