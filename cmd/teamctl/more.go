package main

import "github.com/spf13/cobra"

func (a *app) moreCmds() []*cobra.Command { return nil }
