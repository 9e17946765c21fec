// A member that a build may lack: what it would be made of is then not looked at.
#pragma once

struct Nothing {
  template <class... Given>
  __device__ __forceinline__ explicit Nothing(const Given&...) {}
};

template <bool There, class Type>
struct Either {
  using Held = Type;
};
template <class Type>
struct Either<false, Type> {
  using Held = Nothing;
};
template <bool There, class Type>
using Optional = typename Either<There, Type>::Held;
