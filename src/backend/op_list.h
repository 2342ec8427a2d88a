// A list of ops, and classes generated from it: one with a virtual function for each op, and one
// that overrides all of these in one way.
#pragma once

namespace aerie {

template <class... Ops>
struct OpList {};

// The place in a model where an op is called, for `compare` and profiles.
struct Label {
    const char* name;  // a string literal; "": none
    int layer;         // -1: outside the layers

    constexpr Label(const char* name = "", int layer = -1) : name(name), layer(layer) {}
};

// Declares a virtual do_run(op, label) for every op of a list.
template <class List>
class RunsOps;

template <>
class RunsOps<OpList<>> {
  public:
    virtual ~RunsOps() = default;

  protected:
    void do_run() = delete;
};

template <class Op, class... More>
class RunsOps<OpList<Op, More...>> : public RunsOps<OpList<More...>> {
  protected:
    using RunsOps<OpList<More...>>::do_run;
    virtual void do_run(const Op& op, Label label) = 0;
};

// A Base in which do_run(op, label) calls the template Self::execute(op, label), for every op of a
// list.
template <class Self, class Base, class List>
class OverridesOps;

template <class Self, class Base>
class OverridesOps<Self, Base, OpList<>> : public Base {};

template <class Self, class Base, class Op, class... More>
class OverridesOps<Self, Base, OpList<Op, More...>>
    : public OverridesOps<Self, Base, OpList<More...>> {
  protected:
    using OverridesOps<Self, Base, OpList<More...>>::do_run;
    void do_run(const Op& op, Label label) override {
        static_cast<Self*>(this)->execute(op, label);
    }
};

}  // namespace aerie
