// What tsc is to know of JSX, which h makes: the elements of HTML and SVG take any attribute.
declare namespace JSX {
  type Element = any
  interface IntrinsicElements { [tag: string]: any }
  interface IntrinsicAttributes { key?: string | number }
  interface ElementChildrenAttribute { children: {} }
}

// What browsers have and the tsc of Debian, 4.8, does not know.
interface Array<T> { findLast(is: (item: T) => unknown): T | undefined }
