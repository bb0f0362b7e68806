// Package workspace is the folder an agent works in and the tools to work there:
// bash, read_file, write_file, edit_file, glob and grep.
//
// The file tools are confined to the folder: no path and no symbolic link leads
// out, and only regular files are opened, since a named pipe would block and a
// device do worse. A write replaces the file as a whole, so that a reader, often
// another agent, never sees half of it.
//
// bash starts in the folder and is NOT confined to it. What it is given is
// bounded: time, output, and an environment without secrets; and nothing that it
// started in its process group outlives the call or the agent's process. A
// command that makes a session of its own (setsid) does escape; holding that
// needs a sandbox around the process.
//
// Hard links are not recognized: a file that is linked from outside is read like
// any other. It is not changed outside, because a write makes a new file.
package workspace
