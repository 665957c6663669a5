// $(NAME) references in commands, arguments, environment values and sub paths.

/** Replaces `$(NAME)` by the variable's value; `$$` stands for `$`; a reference to an unknown variable stays as it is. */
export function expandReferences(text: string, variables: ReadonlyMap<string, string>): string {
  return text.replace(/\$(\$|\(([^)]*)\))/g, (whole, first: string, name: string | undefined) => {
    if (first === '$') return '$'
    return variables.get(name ?? '') ?? whole
  })
}
