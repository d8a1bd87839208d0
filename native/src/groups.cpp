#include "groups.h"

#include <algorithm>

namespace kofn {
namespace {

// Stable counting sort by a key between 0 and largest_member.
template <class Key>
void sort_by(std::vector<Member>& members, std::vector<Member>& spare, std::vector<int64_t>& places, Key key) {
    places.assign(largest_member + 2, 0);
    for (const Member& member : members) ++places[key(member) + 1];
    for (std::size_t k = 1; k < places.size(); ++k) places[k] += places[k - 1];
    spare.resize(members.size());
    for (const Member& member : members) spare[places[key(member)]++] = member;
    members.swap(spare);
}

}  // namespace

// Bags of like size next to each other, so that lanes are not padded in vain; among them bags of like counts, so that
// the counts which matter to one lane and those which matter to another are the same. In tiny bags the counts are not
// worth it.
void Groups::arrange() {
    int64_t smallest = largest_member, largest = 0;
    for (const Member& member : members_) {
        smallest = std::min(smallest, member.size);
        largest = std::max(largest, member.size);
    }
    if (largest > 16) sort_by(members_, sorted_, places_, [](const Member& member) { return member.low; });
    if (smallest < largest) sort_by(members_, sorted_, places_, [](const Member& member) { return member.size; });
}

Group Groups::assemble(const Member* members, int number) {
    Group group{};
    group.low = members[0].low;
    for (int l = 0; l < number; ++l) {
        const Member& member = members[l];
        group.p[l] = member.p;
        group.q[l] = member.q;
        group.size[l] = member.size;
        group.longest = std::max(group.longest, member.size);
        group.low = std::min(group.low, member.low);
        group.high = std::max(group.high, member.high);
    }
    group.work = work_.reserve(recursion_work(kernels_.lanes, group.longest, group.high));
    return group;
}

}  // namespace kofn
