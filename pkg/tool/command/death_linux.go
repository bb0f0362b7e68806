package command

import "syscall"

// dieWithParent has the kernel kill the process when the thread that starts it ends, and so when this process does.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
