// Package workspace opens the folder that an agent works in, and provides the tools to work there: a shell, and tools
// that read, write and search files.
//
// The file tools are confined to the folder: no path and no symbolic link leads out, and only regular files are opened,
// since a named pipe would block and a device do worse. A write replaces the whole file, so that a reader, often
// another agent, never sees half of it.
//
// bash starts in the folder. Package command runs it within bounds; the workspace's runner decides whether it is
// confined to the folder.
//
// A [Source] opens workspaces, and a [Current] is the workspace of a member's task.
//
// A hard link is not written: the file would change under one of its names only. It is read only if its mode lets
// everybody read it, as git's objects and package stores do: the other name of a private one may be that of a key.
package workspace
