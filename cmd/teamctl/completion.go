package main

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"
)

// bashHelpers replace functions that cobra's bash script takes from the package bash-completion, where that
// is not loaded.
const bashHelpers = `
# The words of the line; those that bash has broken at = and : are put together again.
__teamctl_words()
{
    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local i n=-1 rest=$COMP_LINE
    words=()
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        if ((n < 0)) || [[ $rest == [[:space:]]* ]]; then
            words[++n]=${COMP_WORDS[i]}
            rest=${rest#"${rest%%[![:space:]]*}"}
        else
            words[n]+=${COMP_WORDS[i]}
        fi
        rest=${rest#"${COMP_WORDS[i]}"}
        ((i == COMP_CWORD)) && cword=$n
    done
    cur=${words[cword]} prev=${words[cword > 0 ? cword - 1 : 0]}
}

__teamctl_filedir()
{
    if declare -F _filedir >/dev/null 2>&1; then
        _filedir "$@"
    elif [[ ${1-} == -d ]]; then
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
}
`

// aloneInBash makes the command that prints cobra's bash script print one that also works without the package
// bash-completion.
func (a *app) aloneInBash(bash *cobra.Command) {
	bash.RunE = func(cmd *cobra.Command, _ []string) error {
		plain, err := cmd.Flags().GetBool("no-descriptions")
		if err != nil {
			return err
		}
		var script bytes.Buffer
		if err := cmd.Root().GenBashCompletionV2(&script, !plain); err != nil {
			return err
		}
		s := strings.ReplaceAll(script.String(), `_get_comp_words_by_ref "$@" cur prev words cword`, `__teamctl_words "$@"`)
		s = strings.ReplaceAll(s, " _filedir ", " __teamctl_filedir ")
		s = strings.ReplaceAll(s, " _filedir\n", " __teamctl_filedir\n")
		s = strings.ReplaceAll(s, `"_filedir `, `"__teamctl_filedir `)
		_, err = a.out.Write([]byte(s + bashHelpers))
		return err
	}
}
