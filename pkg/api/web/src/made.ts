// Maps whose values are made when they are wanted.

// made is what a map has under a key, which is made if it is not there; of more than most the oldest goes.
export function made<T>(of: Map<string, T>, key: string, make: () => T, most = Infinity): T {
  if (!of.has(key)) of.set(key, make())
  if (of.size > most) of.delete(of.keys().next().value!)
  return of.get(key)!
}
