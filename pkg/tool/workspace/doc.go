// Package workspace is the folder an agent works in and the tools to work there: a
// shell, and tools that read, write and search files.
//
// The file tools are confined to the folder: no path and no symbolic link leads
// out, and only regular files are opened, since a named pipe would block and a
// device do worse. A write replaces the file as a whole, so that a reader, often
// another agent, never sees half of it.
//
// bash starts in the folder. Package command runs it, and bounds what it is given;
// whether it is confined to the folder is up to the workspace's runner.
//
// A [Source] gives the folders, and a [Current] is the one of a member's task.
//
// A hard link is not written, for the file would change under one of its names only. It is
// read only if its mode lets everybody read it, as those of git's objects and of package
// stores do: the other name of a private one may be that of a key.
package workspace
