// SPDX-License-Identifier: BSD-2-Clause
// The symbols through which a program's choice of providers and the archive's own list meet.
//
//   where                           defines                       which points at
//   application:
//     infiniband/static_providers.h   section vbt_providers         the providers that it names
//                                     weak vbt_default_providers    nothing
//   archive:
//     default_choice.cpp              strong vbt_default_providers  vbt_compiled_in_providers
//     all_providers.cpp               verbs_provider_all            vbt_compiled_in_providers
//     no_provider.cpp                 verbs_provider_none           nothing
//     compiled_in.cpp (generated)     vbt_compiled_in_providers     every verbs_provider_<name>
//     provider_table.cpp              nothing: it reads them all, and refers strongly to
//                                     vbt_default_providers only
//
// An application that chooses brings the weak vbt_default_providers with it, so default_choice.cpp
// is not pulled, nor any provider through it. Invariant: no other member of the archive may refer
// to those five.
//
// The lists are of void: C has no name for a provider's type, and LTO compares types across
// languages.
#pragma once

extern "C" {

/// Every provider of the archive, ended by null.
extern const void* const vbt_compiled_in_providers[];

/// What a program gets that chose nothing, ended by null; null itself in a program that chose. Not
/// const: C++ has no weak const definitions, and the application's side of it is weak.
extern const void* const* vbt_default_providers;

/// What an application names, as its header declares it. Only those that stand for a list are
/// really of this type.
struct vbt_provider {
  const void* const* list;
};

/// Never handed to the runtime: the first stands for its list, of the second only the address
/// counts.
extern const vbt_provider verbs_provider_all;
extern const vbt_provider verbs_provider_none;
}
